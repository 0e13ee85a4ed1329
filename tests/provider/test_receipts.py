"""The provider's receipt says what is in the folder."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.jobs import Run
from files.samples import FILES, delivered, digest_of, read, restate, sent
from files.test_parts import split
from protocol.signing import OTHER, OURS
from test_architecture import modules_after
from verix_anon.errors import ReceiptError
from verix_anon.files.folder_writer import (
    receipt_of,
    write_delivery,
    write_receipt,
    write_submission,
)
from verix_anon.files.keys import new_key, write_key
from verix_anon.protocol.envelopes import open_envelope
from verix_anon.protocol.statements import Receipt

BEGAN, FINISHED = (datetime(2026, 11, 16, 5, 0, s, tzinfo=UTC) for s in (0, 7))


def signed(folder: Path) -> Receipt:
    data = (folder / "receipt.dsse.json").read_bytes()
    return Receipt.from_bytes(open_envelope(data, [OURS.public], "the receipt").payload)


def test_it_names_every_file_and_the_root(folder: Path) -> None:
    write_receipt(folder, OURS, BEGAN, FINISHED)
    found, header = signed(folder), delivered().header
    assert found.files == {name: digest_of(folder / name) for name in FILES}
    assert found.root == header.root
    assert (found.contract, found.submission) == (sent().contract.digest, sent().digest())
    assert (found.rows, found.leaves, found.nodes) == (header.rows, header.leaves, header.nodes)
    assert (found.engine, found.version) == (header.engine, header.version)
    assert found.began == "2026-11-16T05:00:00+00:00"
    assert found.finished == "2026-11-16T05:00:07+00:00"


def test_the_digests_are_those_that_the_owner_computes(folder: Path) -> None:
    assert receipt_of(folder, BEGAN, FINISHED).files == read(folder).files
    split(folder, [0, 100, 300], lambda table: table)
    restate(folder)
    assert (folder / "records.parquet").is_dir()
    assert receipt_of(folder, BEGAN, FINISHED).files == read(folder).files


def test_a_second_receipt_replaces_the_first(folder: Path) -> None:
    write_receipt(folder, OTHER, BEGAN, FINISHED)
    with pytest.raises(ReceiptError):
        signed(folder)
    write_receipt(folder, OURS, BEGAN, FINISHED)
    assert signed(folder).root == delivered().header.root
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "receipt.dsse.json"])


def test_a_delivery_appears_with_its_receipt(tmp_path: Path) -> None:
    seen = []

    def finish(folder: Path) -> None:
        seen.append((tmp_path / "out").exists())
        write_receipt(folder, OURS, BEGAN, FINISHED)

    write_delivery(delivered(), tmp_path / "out", finish=finish)
    assert seen == [False]
    assert signed(tmp_path / "out").root == delivered().header.root


def test_a_receipt_needs_no_compiled_code() -> None:
    assert "numba" not in modules_after("import verix_anon.files.folder_writer")


def test_the_command_signs(tmp_path: Path, run: Run) -> None:
    write_submission(sent(), tmp_path / "submission")
    key = new_key()
    write_key(key, tmp_path / "provider.key")
    out = tmp_path / "delivery"
    made = run(
        *("anonymize", tmp_path / "submission", "--out", out, "--json"),
        *("--sign", tmp_path / "provider.key"),
    )
    assert made.code == 0
    assert json.loads(made.out)["signed"] == key.public.keyid
    data = (out / "receipt.dsse.json").read_bytes()
    found = Receipt.from_bytes(open_envelope(data, [key.public], "the receipt").payload)
    header = (out / "delivery.json").read_bytes()
    assert found.files["delivery.json"] == hashlib.sha256(header).hexdigest()
    assert found.root.hex() == json.loads(header)["root"] == json.loads(made.out)["root"]
    assert found.began <= found.finished


def test_a_key_that_cannot_sign_is_told_of_before_the_work(tmp_path: Path, run: Run) -> None:
    write_submission(sent(), tmp_path / "submission")
    made = run("anonymize", tmp_path / "submission", "--out", tmp_path / "d", "--sign", "no.key")
    assert made.code == 2
    assert "there is no key no.key" in made.err
    assert not (tmp_path / "d").exists()
