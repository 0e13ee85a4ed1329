"""Owners whose secrets are public: tables from seeds, prepared, and honest deliveries.

A verifier judges by a manifest, so it takes an owner to make a case for it. What is delivered
honestly comes from the second implementation, as everywhere in a kit.
"""

from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tools.kit import folders, independent
from tools.kit.independent import Anonymized, Leaf, Split, Work
from tools.kit.tables import KitSubmission, uniform, whole
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.files.deliveries import read_delivery
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery
from verix_anon.protocol.records import wire_columns
from verix_anon.protocol.signing import SigningKey

N = 400
TOWNS = ["ash", "elm", "fir", "oak"]
PRIORITIES = {"age": 1.0, "score": 0.8, "town": 0.5, "hours": 0.6, "rank": 0.3}


def _table() -> pa.Table:
    """Ties, decimals, categories, a skewed column, and a target that follows two of them."""
    age, score = whole(70, N, 52), uniform(71, N)
    hours = [40 if u < 0.8 else int(39 * u) for u in uniform(72, N)]
    chance = [0.05 + 0.45 * (a > 25) + 0.45 * (s > 0.5) for a, s in zip(age, score, strict=True)]
    classes = [u < p for u, p in zip(uniform(73, N), chance, strict=True)]
    return pa.table(
        {
            "age": age,
            "score": score,
            "town": [TOWNS[i] for i in whole(74, N, 4)],
            "hours": hours,
            "rank": whole(75, N, 12),
            "y": ["yes" if is_positive else "no" for is_positive in classes],
        }
    )


def signing_key(name: str) -> SigningKey:
    """A key that anybody can make: it shows how receipts are judged, and signs nothing else."""
    seed = sha256(f"verix kit {name}".encode()).digest()
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed))


@cache
def owner(name: str) -> Prepared:
    """What an owner sent and kept: `coded`, `clear`, `paper` or `signed`."""
    usual = partial(PrepareOptions, unsafe_seed=1, threads=1)
    if name == "coded":
        # No target, so that neither preparing nor judging takes a model.
        sent, others = list(PRIORITIES), ["y"]
        options = usual(priorities=PRIORITIES)
        return prepare(_table(), quasi=sent, kept=others, task="none", k=3, options=options)
    if name == "signed":
        # The same again, with the provider's key pinned.
        made, keys = owner("coded"), (signing_key("provider").public,)
        return replace(made, manifest=replace(made.manifest, provider_keys=keys))
    if name == "paper":
        options = PrepareOptions.paper(unsafe_seed=1, threads=1)
        return prepare(_table(), quasi="all", target="y", k=2, options=options)
    assert name == "clear"
    options = usual(rule=Rule.VARIANCE_REDUCTION, clear=True, min_leaf="2k")
    return prepare(_table(), quasi="all", target="y", k=3, options=options)


@cache
def _answered(name: str) -> tuple[KitSubmission, Anonymized]:
    submission = owner(name).submission
    everything = slice(0, submission.records.n_rows)
    columns = wire_columns(submission.contract, submission.records, everything)
    sent = KitSubmission(
        contract=submission.contract.to_bytes(),
        trackers=[bytes(tracker) for tracker in submission.records.tracker],
        columns=[values.tolist() for values in columns],
    )
    return sent, independent.anonymize(sent.contract, sent.trackers, sent.columns)


def write_owner(name: str, kit: Path) -> dict[str, str]:
    """Write an owner's manifest and submission into a kit once, and say where they lie."""
    paths = {"manifest": f"owners/{name}/manifest.verix", "submission": f"owners/{name}/submission"}
    if not (kit / paths["manifest"]).exists():
        sent, _ = _answered(name)
        folders.write_submission(sent, kit / paths["submission"])
        write_manifest(owner(name).manifest, kit / paths["manifest"])
    return paths


def write_honest(name: str, folder: Path) -> None:
    """Write the delivery that an owner must accept."""
    folders.write_delivery(*_answered(name), folder)


def write_last_of_equals(name: str, folder: Path) -> None:
    """Write the delivery that follows if the last of equal scores is split, not the first."""
    sent, honest = _answered(name)
    made = independent.anonymize(sent.contract, sent.trackers, sent.columns, _grown_backwards)
    assert made.nodes != honest.nodes
    folders.write_delivery(sent, made, folder)


def _grown_backwards(job: Work, rows: list[int], depth: int) -> Leaf | Split:
    last = len(job.quasi) - 1

    def named_forwards(tree: Leaf | Split) -> Leaf | Split:
        if isinstance(tree, Leaf):
            return tree
        left, right = named_forwards(tree.left), named_forwards(tree.right)
        return replace(tree, column=last - tree.column, left=left, right=right)

    return named_forwards(independent.grow(replace(job, quasi=job.quasi[::-1]), rows, depth))


@cache
def honest(name: str) -> Delivery:
    """The same delivery, to be altered."""
    made = owner(name)
    with TemporaryDirectory(prefix="verix-honest-") as place:
        folder = Path(place) / "delivery"
        write_honest(name, folder)
        contract, n_rows = made.submission.contract, made.manifest.n_rows
        return read_delivery(folder, contract, n_rows=n_rows).delivery
