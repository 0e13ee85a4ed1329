"""The deliveries that a verifier is shown: honest ones, cheats, and what is no delivery."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from verix_anon.adversaries import ADVERSARIES, only
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Profile
from verix_anon.conform import cheats, folders, owners
from verix_anon.conform.kit import Kind, Made, Recipe
from verix_anon.conform.malformed import HEADER, MALFORMED, RECORDS
from verix_anon.conform.tables import canonical
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.deliveries import RECEIPT_FILE, read_header, write_delivery
from verix_anon.files.hashed import digests_of_folder
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.envelopes import sign
from verix_anon.protocol.messages import Delivery
from verix_anon.protocol.statements import DELIVERED, Receipt

__all__ = ["EXITS", "SEEN", "for_verifiers"]

Write = Callable[[Path], object]
"""Writes a delivery's folder."""

EXITS = {
    Kind.ACCEPTED: 0,
    Kind.CHEAT: 1,
    Kind.MALFORMED: 1,
    Kind.UNDECIDED: 3,
    Kind.MISTAKE: 2,
}
"""The exit code of a verifier (spec §10)."""

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

BEGAN = "2026-01-01T00:00:00Z"
"""And finished: what every receipt of a kit says, so that it is the same whenever it is made."""


def for_verifiers() -> list[Recipe]:
    """What a verifier is shown."""
    return [*_accepted(), *_adversaries(), *_cheats(), *_malformed(), *_receipts(), *_mistakes()]


def _recipe(
    kind: Kind, name: str, title: str, section: str, shown: tuple[str, Write], **said: object
) -> Recipe:
    """A case of an owner's and a delivery; `said` are the profile and the layers."""
    owner, write = shown
    folder = {Kind.ACCEPTED: "accepted", Kind.MALFORMED: "malformed"}.get(kind, "cheats")

    def make(kit: Path) -> Made:
        paths = {**owners.write_owner(owner, kit), "delivery": f"{folder}/{name}"}
        (kit / folder).mkdir(exist_ok=True)
        write(kit / paths["delivery"])
        expected = {"exit": EXITS[kind], "profile": Profile.FULL.value, **said}
        return Made(paths, expected)

    return Recipe(id=name, title=title, section=section, kind=kind, make=make)


def _accepted() -> list[Recipe]:
    def accepted(name: str, title: str, section: str, owner: str, **said: object) -> Recipe:
        write = said.pop("write", partial(owners.write_honest, owner))
        assert callable(write)
        return _recipe(Kind.ACCEPTED, name, title, section, (owner, write), **said)

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
    ]


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
            _recipe(
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
    "lost-sentinel": (
        "One sentinel is gone, and the paper's layers look.",
        *("paper", cheats.loses_sentinel, "sentinels", "paper"),
    ),
    "moved-twin": (
        "One of two twins lies in the neighbouring leaf, judged thin.",
        *("coded", cheats.moves_twin, "twins", "thin"),
    ),
    "other-labels": (
        "Labels that have nothing to do with the records.",
        *("clear", cheats.invents_labels, "replay", "full"),
    ),
    "other-labels-paper": (
        "Labels that have nothing to do with the records, and the paper's layers look.",
        *("paper", cheats.invents_labels, "fingerprint", "paper"),
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
        _recipe(
            Kind.CHEAT,
            name,
            title,
            "9",
            (owner, partial(write, owner, alter)),
            profile=profile,
            layers=[layer],
        )
        for name, (title, owner, alter, layer, profile) in CHEATS.items()
    ]


def _malformed() -> list[Recipe]:
    def write(spoil: Callable[[Path], object], folder: Path) -> None:
        owners.write_honest("clear", folder)
        spoil(folder)

    return [
        _recipe(
            Kind.MALFORMED,
            f"malformed-{name}",
            case.title,
            case.section,
            ("clear", partial(write, case.spoil)),
            layers=["commitment"],
        )
        for name, case in MALFORMED.items()
    ] + [
        _recipe(
            Kind.MALFORMED,
            "malformed-other-job",
            "An honest delivery of another job.",
            "10",
            ("clear", partial(owners.write_honest, "coded")),
            layers=["commitment"],
        )
    ]


def _receipts() -> list[Recipe]:
    def write(key: str, change: Callable[[Receipt], Receipt], folder: Path) -> None:
        owners.write_honest("signed", folder)
        files = digests_of_folder(folder, DELIVERED)
        said = change(Receipt.of(read_header(folder), files, BEGAN, BEGAN))
        (folder / RECEIPT_FILE).write_bytes(sign(said.to_bytes(), owners.signing_key(key)))

    def of_another(said: Receipt) -> Receipt:
        return replace(said, root=owners.honest("paper").header.root)

    def case(kind: Kind, name: str, title: str, deliver: Write) -> Recipe:
        said = {} if kind is Kind.ACCEPTED else {"layers": ["receipt"]}
        return _recipe(kind, name, title, "8.5", ("signed", deliver), **said)

    def as_it_is(said: Receipt) -> Receipt:
        return said

    return [
        case(
            Kind.ACCEPTED,
            "receipt-honest",
            "An honest delivery with the receipt that is asked for.",
            partial(write, "provider", as_it_is),
        ),
        case(
            Kind.UNDECIDED,
            "receipt-missing",
            "An honest delivery without the receipt that is asked for.",
            partial(owners.write_honest, "signed"),
        ),
        case(
            Kind.UNDECIDED,
            "receipt-of-a-stranger",
            "A receipt that a key signed which nobody pinned.",
            partial(write, "stranger", as_it_is),
        ),
        case(
            Kind.CHEAT,
            "receipt-of-another",
            "A receipt of the provider's about another root.",
            partial(write, "provider", of_another),
        ),
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
