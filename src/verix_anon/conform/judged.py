"""The deliveries that a verifier is shown: honest ones, cheats, and what is no delivery."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from verix_anon.adversaries import ADVERSARIES, only
from verix_anon.client.prepare import Prepared
from verix_anon.conform import cheats, folders, owners
from verix_anon.conform.kit import Kind, Made, Recipe
from verix_anon.conform.malformed import HEADER, MALFORMED, RECORDS
from verix_anon.conform.receipts import receipts
from verix_anon.conform.showing import EXITS, recipe
from verix_anon.conform.tables import canonical
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.deliveries import write_delivery
from verix_anon.files.hashed import digests_of_folder
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.messages import Delivery

__all__ = ["SEEN", "for_verifiers"]

SEEN: dict[str, set[str]] = {
    "lazy": {"twins", "replay"},
    "dumb": {"commitment", "splits"},
    "approximate": {"splits"},
    "informed": {"replay"},
    "informed-40": {"replay"},
    "informed-echo": {"replay"},
    "informed-traps": {"sentinels", "twins", "replay"},
    "shallow": {"splits"},
    "half-columns": {"splits"},
    "sampled-splits": {"splits"},
    "sampled-scores": {"splits"},
    "blind-below": {"splits"},
    "blind-above": {"splits"},
    "sampled-tree": {"splits"},
    "mean": {"splits"},
    "half-k": {"commitment"},
    "leaf-k": {"commitment"},
    "flipped-labels": {"replay"},
    "swapped-trackers": {"replay"},
    "wide-bounds": {"replay"},
    "refilled": {"replay"},
    "echoed": {"replay"},
    "replayed": {"sentinels", "twins", "replay"},
    "deviates": {"splits"},
    "swapped-values": {"replay"},
    "moved-sentinels": {"replay"},
    "other-score": {"splits"},
    "cut-node": {"splits"},
    "no-weights": {"splits"},
    "mixed-weights": {"splits"},
    "no-value-below": {"splits"},
}
"""The layers that see each adversary with the submission at hand; others may as well."""

# On a table as small as the kit's its samples hold all of a coded column's positions.
NEEDS_LABELS = {"sampled-scores"}


def for_verifiers() -> list[Recipe]:
    """What a verifier is shown."""
    return [*_accepted(), *_adversaries(), *_cheats(), *_malformed(), *receipts(), *_mistakes()]


def _accepted() -> list[Recipe]:
    def accepted(name: str, title: str, section: str, owner: str, **said: object) -> Recipe:
        write = said.pop("write", partial(owners.write_honest, owner))
        assert callable(write)
        return recipe(Kind.ACCEPTED, name, title, section, (owner, write), **said)

    return [
        accepted("honest-coded", "An honest delivery of coded records.", "9", "coded"),
        accepted("honest-clear", "An honest delivery of records in clear.", "9", "clear"),
        accepted("honest-paper", "An honest one under the paper's commitment.", "6.3", "paper"),
        accepted("thin-coded", "An honest one, judged thin.", "9", "coded", profile="thin"),
        accepted(
            "thin-clear", "An honest one in clear, judged thin.", "9", "clear", profile="thin"
        ),
        accepted(
            "paper-honest", "An honest one, judged as in the paper.", "9", "paper", profile="paper"
        ),
        accepted(
            "honest-parts",
            "An honest one whose records a cluster wrote, in parts and in no order.",
            "8.3",
            "clear",
            write=partial(_in_parts, "clear"),
        ),
        accepted(
            "honest-pretty",
            "An honest one whose delivery.json is in another form than that of RFC 8785.",
            "8.2",
            "clear",
            write=_pretty,
        ),
    ]


def _pretty(folder: Path) -> None:
    owners.write_honest("clear", folder)
    header = json.loads((folder / HEADER).read_bytes())
    (folder / HEADER).write_text(json.dumps(dict(reversed(header.items())), indent=2))


def _in_parts(owner: str, folder: Path) -> None:
    owners.write_honest(owner, folder)
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    folders.parts(table.take(list(range(table.num_rows))[::-1]), folder / RECORDS)
    header = Fields.parse((folder / HEADER).read_bytes(), HEADER, TableError).values
    files = digests_of_folder(folder, [RECORDS, "leaves.parquet", "nodes.parquet"])
    (folder / HEADER).write_bytes(canonical({**header, "files": files}))


def _adversaries() -> list[Recipe]:
    def write(name: str, owner: str, folder: Path) -> None:
        _write(ADVERSARIES[name](0).anonymize(owners.owner(owner).submission), folder)

    recipes = []
    for name in ADVERSARIES:
        has_labels = name in NEEDS_LABELS or only(name) is Rule.VARIANCE_REDUCTION
        owner = "clear" if has_labels else "coded"
        recipes.append(
            recipe(
                Kind.CHEAT,
                f"adversary-{name}",
                f"What the adversary `{name}` delivers.",
                "9",
                (owner, partial(write, name, owner)),
                layers=sorted(SEEN[name]),
            )
        )
    return recipes


def _write(delivery: Delivery, folder: Path) -> None:
    """Write a delivery that is the same whenever it is made."""
    write_delivery(replace(delivery, header=replace(delivery.header, seconds=0)), folder)


Alter = Callable[[Prepared, Delivery], Delivery]


def _widened(made: Prepared, honest: Delivery) -> Delivery:
    return ADVERSARIES["wide-bounds"](0).anonymize(made.submission)


CHEATS: dict[str, tuple[str, str, Alter, str, str]] = {
    "forged-root": (
        "All is true but the root.",
        *("coded", cheats.forges_root, "commitment", "full"),
    ),
    "forged-root-paper": (
        "All is true but the root, which is the paper's.",
        *("paper", cheats.forges_root, "commitment", "paper"),
    ),
    "thin-forged-root": (
        "All is true but the root, judged thin.",
        *("coded", cheats.forges_root, "commitment", "thin"),
    ),
    "stated-contract": (
        "All is true, for another contract by its own word.",
        *("clear", cheats.states_contract, "commitment", "full"),
    ),
    "stated-contract-paper": (
        "The same under the paper's commitment, whose root does not bind the contract.",
        *("paper", cheats.states_contract, "commitment", "full"),
    ),
    "stated-submission": (
        "All is true, for another submission by its own word.",
        *("clear", cheats.states_submission, "commitment", "full"),
    ),
    "stated-submission-paper": (
        "The same under the paper's commitment, whose root does not bind the submission.",
        *("paper", cheats.states_submission, "commitment", "full"),
    ),
    "lost-sentinel": (
        "One sentinel is gone, and the paper's layers look.",
        *("paper", cheats.loses_sentinel, "sentinels", "paper"),
    ),
    "moved-twin": (
        "One of two twins lies in the neighbouring leaf, judged thin.",
        *("coded", cheats.moves_twin, "twins", "thin"),
    ),
    "changed-sentinel": (
        "One sentinel has another tracker, and the paper's layers look.",
        *("paper", cheats.changes_sentinel, "sentinels", "paper"),
    ),
    "changed-twin": (
        "One of two twins has another tracker, and the paper's layers look.",
        *("paper", cheats.changes_twin, "twins", "paper"),
    ),
    "other-labels": (
        "Labels that have nothing to do with the records.",
        *("clear", cheats.invents_labels, "replay", "full"),
    ),
    "other-labels-paper": (
        "Labels that have nothing to do with the records, and the paper's layers look.",
        *("paper", cheats.invents_labels, "fingerprint", "paper"),
    ),
    "thin-labels": (
        "Labels that have nothing to do with the records, judged thin.",
        *("clear", cheats.invents_labels, "replay", "thin"),
    ),
    "thin-moved": (
        "One watch record lies in the neighbouring leaf, and no witness in either; judged thin.",
        *("coded", cheats.moves_watched, "replay", "thin"),
    ),
    "thin-wide": (
        "Wider bounds than the records have, judged thin.",
        *("coded", _widened, "splits", "thin"),
    ),
}
"""Title, owner, what is altered, the layer that sees it, and the profile."""


def _cheats() -> list[Recipe]:
    def write(owner: str, alter: Alter, folder: Path) -> None:
        _write(alter(owners.owner(owner), owners.honest(owner)), folder)

    return [
        recipe(
            Kind.CHEAT,
            name,
            title,
            "9",
            (owner, partial(write, owner, alter)),
            profile=profile,
            layers=[layer],
        )
        for name, (title, owner, alter, layer, profile) in CHEATS.items()
    ] + [
        recipe(
            Kind.CHEAT,
            "last-of-equals",
            "Of equal scores the last in contract order was split.",
            "4.1",
            ("clear", partial(owners.write_last_of_equals, "clear")),
            layers=["splits"],
        )
    ]


def _malformed() -> list[Recipe]:
    def write(spoil: Callable[[Path], object], folder: Path) -> None:
        owners.write_honest("clear", folder)
        spoil(folder)

    return [
        recipe(
            Kind.MALFORMED,
            f"malformed-{name}",
            case.title,
            case.section,
            ("clear", partial(write, case.spoil)),
            layers=["commitment"],
        )
        for name, case in MALFORMED.items()
    ] + [
        recipe(
            Kind.MALFORMED,
            "malformed-other-job",
            "An honest delivery of another job.",
            "10",
            ("clear", partial(owners.write_honest, "coded")),
            layers=["commitment"],
        )
    ]


def _mistakes() -> list[Recipe]:
    def other_submission(kit: Path) -> Made:
        paths = owners.write_owner("coded", kit)
        paths |= {"submission": owners.write_owner("clear", kit)["submission"]}
        return _mistaken(kit, paths, "other-submission")

    def damaged_manifest(kit: Path) -> Made:
        paths = owners.write_owner("coded", kit)
        spoiled = kit / "owners" / "damaged"
        spoiled.mkdir()
        data = (kit / paths["manifest"]).read_bytes()
        (spoiled / "manifest.verix").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        paths |= {"manifest": "owners/damaged/manifest.verix"}
        return _mistaken(kit, paths, "damaged-manifest")

    titles = {
        "other-submission": ("The submission is not the manifest's.", other_submission),
        "damaged-manifest": ("The owner's own manifest is damaged.", damaged_manifest),
    }
    return [
        Recipe(id=name, title=title, section="10", kind=Kind.MISTAKE, make=make)
        for name, (title, make) in titles.items()
    ]


def _mistaken(kit: Path, paths: dict[str, str], name: str) -> Made:
    """An honest delivery, judged by what does not belong to it: that accuses nobody."""
    place = f"cheats/{name}"
    (kit / "cheats").mkdir(exist_ok=True)
    if not (kit / place).exists():
        owners.write_honest("coded", kit / place)
    return Made({**paths, "delivery": place}, {"exit": EXITS[Kind.MISTAKE], "profile": "full"})
