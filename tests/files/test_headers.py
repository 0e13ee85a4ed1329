"""delivery.json says exactly what it must, in plain numbers and short printable words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from files.samples import N_ROWS, delivered, read, refused
from verix_anon.files.deliveries import HEADER_FIELDS, MAX_HEADER_BYTES

Fields = dict[str, Any]
DIGESTS = ("contract", "submission", "root")
COUNTS = ("rows", "leaves", "nodes")
WORDS = ("engine", "version")
NOT_TEXT: list[object] = [None, True, 7, 1.5, [], {}, ["verix"]]
NOT_COUNTS: list[object] = [
    None,
    True,
    False,
    300.0,
    "300",
    -1,
    2**32,
    10**400,
    [],
    {},
]


def spoil(folder: Path, change: Callable[[Fields], object]) -> None:
    path = folder / "delivery.json"
    fields = json.loads(path.read_bytes())
    change(fields)
    path.write_text(json.dumps(fields), encoding="utf-8")


def assert_refused(folder: Path, name: str, value: object, sentence: str) -> None:
    honest = (folder / "delivery.json").read_bytes()
    spoil(folder, lambda fields: fields.update({name: value}))
    with refused(sentence):
        read(folder)
    (folder / "delivery.json").write_bytes(honest)


@pytest.mark.parametrize("name", sorted(HEADER_FIELDS))
def test_missing_field(folder: Path, name: str) -> None:
    spoil(folder, lambda fields: fields.pop(name))
    with refused(f"{name} must be" if name == "format" else f"field '{name}' is missing"):
        read(folder)


def test_unknown_field(folder: Path) -> None:
    assert_refused(folder, "note", "hello", "unknown field 'note'")


def test_another_format(folder: Path) -> None:
    wrong: list[object] = ["verix/delivery/1", None, ["verix/delivery/2"], {}, 1]
    for value in wrong:
        assert_refused(folder, "format", value, "format must be 'verix/delivery/2', not")


@pytest.mark.parametrize("name", DIGESTS)
def test_digests(folder: Path, name: str) -> None:
    root = delivered().header.root.hex()
    wrong: list[object] = [
        root[:-1],
        root.upper(),
        root + "0",
        "g" * 64,
        root + "\n",
        "",
        *NOT_TEXT,
    ]
    wrong += ["\u0661" * 64, root[:-2] + "\n\n"]
    for value in wrong:
        assert_refused(folder, name, value, f"{name} must be 64 lower-case hexadecimal digits")


@pytest.mark.parametrize("name", WORDS)
def test_words(folder: Path, name: str) -> None:
    wrong: list[object] = ["x" * 65, "x" * 10_000, "a\nb", "\x1b[31mred", "\x9b31m", "\u202eabc"]
    wrong += ["\0", "\ud800", "a\u2028b", "\x7f", *NOT_TEXT]
    for value in wrong:
        assert_refused(folder, name, value, f"{name} must be (printable )?text")


def test_words_that_are_fine(folder: Path) -> None:
    spoil(folder, lambda fields: fields.update(engine="Mötor 3 <b>|</b>", version=""))
    assert read(folder).delivery.header.engine == "Mötor 3 <b>|</b>"


@pytest.mark.parametrize("name", COUNTS)
def test_counts(folder: Path, name: str) -> None:
    for value in NOT_COUNTS:
        assert_refused(
            folder, name, value, f"{name} must be a whole number from 0 to 4294967295, not"
        )


def test_counts_that_cannot_be(folder: Path) -> None:
    n_leaves = delivered().header.leaves
    for leaves in (0, N_ROWS // 4 + 1, 2**31):
        sentence = f"300 records make 1 to 75 leaves, not {leaves:,}"
        assert_refused(folder, "leaves", leaves, sentence)
    for nodes in (0, 2 * n_leaves, 2 * n_leaves - 3):
        sentence = f"{n_leaves:,} leaves make {2 * n_leaves - 1:,} nodes, not {nodes:,}"
        assert_refused(folder, "nodes", nodes, sentence)
    for rows in (0, N_ROWS + 1, 2**32 - 1):
        assert_refused(folder, "rows", rows, f"{rows:,} rows came back of 300")
    assert_refused(folder, "rows", N_ROWS - 1, "records.parquet has 300 rows, more than 299")


NAMES = ("leaves.parquet", "nodes.parquet", "records.parquet")


def test_files_that_are_no_digests(folder: Path) -> None:
    for value in (None, True, 7, "x", [], list(NAMES)):
        assert_refused(folder, "files", value, "files must hold named fields")
    digest = "0" * 64
    others: list[object] = [None, 5, digest[:-1], digest + "0", "G" * 64, [digest], {}]
    for wrong in others:
        for name in NAMES:
            files = {**dict.fromkeys(NAMES, digest), name: wrong}
            assert_refused(folder, "files", files, f"{name} must be 64 lower-case hexadecimal")
    for name in NAMES:
        files = dict.fromkeys(NAMES, digest)
        del files[name]
        assert_refused(folder, "files", files, f"delivery.json: files: field '{name}' is missing")


@pytest.mark.parametrize(
    "name", ["delivery.json", "contract.json", "../leaves.parquet", "/etc/passwd", "", "x" * 999]
)
def test_files_of_other_names(folder: Path, name: str) -> None:
    files = dict.fromkeys((*NAMES, name), "0" * 64)
    assert_refused(folder, "files", files, "delivery.json: files: unknown field ")


def test_seconds(folder: Path) -> None:
    wrong: list[object] = [
        None,
        True,
        "1",
        -1,
        -0.5,
        1e300,
        10**400,
        [],
        {},
    ]
    for value in wrong:
        assert_refused(folder, "seconds", value, "seconds must be a (finite )?number")
    for fine in (0, 3, 0.25):

        def change(fields: Fields, fine: float = fine) -> None:
            fields.update(seconds=fine)

        spoil(folder, change)
        assert read(folder).delivery.header.seconds == fine


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'"delivery"',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"{" * 60_000,
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'{"rows":' + b"9" * 60_000 + b"}",
        b"{}{}",
        b"\0" * 100,
        b"NaN",
    ],
)
def test_other_bytes(folder: Path, data: bytes) -> None:
    (folder / "delivery.json").write_bytes(data)
    with refused(r"delivery\.json: (not JSON in UTF-8|not a JSON object|format must be)"):
        read(folder)


def test_a_field_twice(folder: Path) -> None:
    path = folder / "delivery.json"
    path.write_bytes(path.read_bytes().replace(b'{"contract"', b'{"rows":1,"contract"'))
    with refused(r"not JSON in UTF-8 \(a field occurs twice\)"):
        read(folder)


def test_other_encodings(folder: Path) -> None:
    path = folder / "delivery.json"
    text = path.read_text(encoding="utf-8")
    for encoding in ("utf-16", "utf-32", "utf-8-sig"):
        path.write_bytes(text.encode(encoding))
        with refused("not JSON in UTF-8"):
            read(folder)
    path.write_bytes(path.read_bytes().replace(b"verix-local", b"verix-\xe9"))
    with refused("not JSON in UTF-8"):
        read(folder)


def test_oversized(folder: Path) -> None:
    path = folder / "delivery.json"
    path.write_bytes(path.read_bytes() + b" " * MAX_HEADER_BYTES)
    with refused(f"larger than {MAX_HEADER_BYTES} bytes, the limit for what it holds"):
        read(folder)
