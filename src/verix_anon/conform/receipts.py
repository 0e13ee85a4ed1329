"""Deliveries to an owner who asks for the provider's receipt: true, missing, false (spec §8.5)."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from verix_anon.conform import owners
from verix_anon.conform.kit import Kind, Recipe
from verix_anon.conform.malformed import OTHER, RECORDS
from verix_anon.conform.showing import Write, recipe
from verix_anon.conform.tables import canonical
from verix_anon.files.deliveries import RECEIPT_FILE, read_header
from verix_anon.files.hashed import digests_of_folder
from verix_anon.protocol.envelopes import sign
from verix_anon.protocol.statements import DELIVERED, Receipt

__all__ = ["receipts"]

BEGAN = "2026-01-01T00:00:00Z"
"""And finished: what every receipt of a kit says, so that it is the same whenever it is made."""


def receipts() -> list[Recipe]:
    """What a verifier is shown where a key of the provider's is pinned."""
    return [
        _case(
            Kind.ACCEPTED,
            "receipt-honest",
            "An honest delivery with the receipt that is asked for.",
            partial(_write, "provider", _as_it_is),
        ),
        _case(
            Kind.UNDECIDED,
            "receipt-missing",
            "An honest delivery without the receipt that is asked for.",
            partial(owners.write_honest, "signed"),
        ),
        _case(
            Kind.UNDECIDED,
            "receipt-of-a-stranger",
            "A receipt that a key signed which nobody pinned.",
            partial(_write, "stranger", _as_it_is),
        ),
        _case(
            Kind.CHEAT,
            "receipt-of-another",
            "A receipt of the provider's about another root.",
            partial(_write, "provider", _of_another),
        ),
        _case(
            Kind.CHEAT,
            "receipt-other-files",
            "A receipt of the provider's about this root, and another file of records.",
            partial(_write, "provider", _of_other_files),
        ),
        _case(
            Kind.CHEAT,
            "receipt-forged",
            "The true receipt, under the provider's name, with a signature of somebody else's.",
            _forged,
        ),
    ]


def _case(kind: Kind, name: str, title: str, deliver: Write) -> Recipe:
    said = {} if kind is Kind.ACCEPTED else {"layers": ["receipt"]}
    return recipe(kind, name, title, "8.5", ("signed", deliver), **said)


def _write(key: str, change: Callable[[Receipt], Receipt], folder: Path) -> None:
    owners.write_honest("signed", folder)
    files = digests_of_folder(folder, DELIVERED)
    said = change(Receipt.of(read_header(folder), files, BEGAN, BEGAN))
    (folder / RECEIPT_FILE).write_bytes(sign(said.to_bytes(), owners.signing_key(key)))


def _as_it_is(said: Receipt) -> Receipt:
    return said


def _of_another(said: Receipt) -> Receipt:
    return replace(said, root=owners.honest("paper").header.root)


def _of_other_files(said: Receipt) -> Receipt:
    return replace(said, files={**said.files, RECORDS: OTHER})


def _forged(folder: Path) -> None:
    _write("stranger", _as_it_is, folder)
    envelope = json.loads((folder / RECEIPT_FILE).read_bytes())
    envelope["signatures"][0]["keyid"] = owners.signing_key("provider").public.keyid
    (folder / RECEIPT_FILE).write_bytes(canonical(envelope))
