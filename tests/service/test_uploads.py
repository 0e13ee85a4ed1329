"""Uploads on disk: the offset is the file's size, one writer at a time, and digests decide."""

from hashlib import sha256
from pathlib import Path

import pytest
from pydantic import ValidationError

from verix_anon.protocol.providers import File
from verix_anon.service.api.bodies import FileOrder
from verix_anon.service.jobs import RequestRefusedError
from verix_anon.service.uploads import (
    Upload,
    remove_uploads,
)

DATA = b"0123456789" * 100
JOB = "ab" * 16


def upload(folder: Path, data: bytes = DATA, name: str = "contract.json") -> Upload:
    return Upload(folder, JOB, File(name=name, size=len(data), sha256=sha256(data).hexdigest()))


def test_bytes_are_appended_and_kept_when_all_are_there(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    assert upload_.offset() == 0
    writer = upload_.begin(0)
    assert writer.append(DATA[:400]) == upload_.offset() == 400
    assert writer.append(DATA[400:]) == 1000
    kept: list[bytes] = []
    upload_.finish(lambda path: kept.append(path.read_bytes()))
    assert kept == [DATA]
    assert not upload_.path.exists()
    upload_.finish(lambda path: kept.append(b"again"))
    assert kept == [DATA]


def test_what_cannot_be_kept_is_still_there(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    upload_.begin(0).append(DATA)

    def fail(path: Path) -> None:
        raise OSError(28, "no room")

    with pytest.raises(OSError, match="no room"):
        upload_.finish(fail)
    assert upload_.offset() == len(DATA)


def test_an_upload_that_lacks_bytes_is_not_kept(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    upload_.begin(0).append(DATA[:-1])
    upload_.finish(lambda path: pytest.fail("kept"))


def test_another_digest_begins_anew(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    upload_.begin(0).append(bytes(len(DATA)))
    with pytest.raises(RequestRefusedError, match="SHA-256"):
        upload_.finish(lambda path: pytest.fail("kept"))
    assert upload_.offset() == 0
    assert upload_.begin(0).append(DATA) == len(DATA)


def test_a_dead_writer_is_taken_over_at_once(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    dead = upload_.begin(0)
    dead.append(DATA[:10])
    alive = upload_.begin(10)
    with pytest.raises(RequestRefusedError, match="Another request"):
        dead.append(DATA[10:20])
    assert alive.append(DATA[10:20]) == 20


def test_a_wrong_offset_takes_nothing_over(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    writer = upload_.begin(0)
    for wrong in (1, 10**18):
        with pytest.raises(RequestRefusedError, match="upload is at 0"):
            upload_.begin(wrong)
    assert writer.append(DATA) == len(DATA)


def test_nothing_is_written_beyond_the_size(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    writer = upload_.begin(0)
    writer.append(DATA[:-1])
    with pytest.raises(RequestRefusedError, match="stated size"):
        writer.append(b"12")
    assert upload_.offset() == len(DATA) - 1


def test_uploads_are_private_and_go_with_their_job(tmp_path: Path) -> None:
    upload_ = upload(tmp_path, name="records.parquet/part-0.parquet")
    upload_.begin(0).append(DATA)
    assert upload_.path.parent == tmp_path / JOB
    assert upload_.path.stat().st_mode & 0o077 == 0
    assert upload_.path.parent.stat().st_mode & 0o077 == 0
    remove_uploads(tmp_path, JOB)
    assert not (tmp_path / JOB).exists()
    remove_uploads(tmp_path, JOB)


def test_a_job_that_is_deleted_takes_no_more(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    writer = upload_.begin(0)
    remove_uploads(tmp_path, JOB)
    with pytest.raises(RequestRefusedError, match="no such job"):
        writer.append(DATA)
    with pytest.raises(RequestRefusedError, match="no such job"):
        upload_.finish(lambda path: pytest.fail("kept"))


def ordered(name: str) -> FileOrder:
    return FileOrder(name=name, size=1, sha256="0" * 64)


@pytest.mark.parametrize(
    "name",
    [
        "submission.json",
        "contract.json",
        "records.parquet",
        "records.parquet/part-00000-8c1b.c000.snappy.parquet",
        "records.parquet/0.parquet",
    ],
)
def test_names_of_a_submission(name: str) -> None:
    assert ordered(name).name == name


TRICKS = (
    "",
    ".",
    "../contract.json",
    "/contract.json",
    "contract.json\0",
    "contract.json\n",
    "CONTRACT.JSON",
    "records.parquet/",
    "records.parquet//a.parquet",
    "records.parquet/../../a.parquet",
    "records.parquet/a/b.parquet",
    "records.parquet\\a.parquet",
    "records.parquet/a\\b.parquet",
    "records.parquet%2Fa.parquet",
    "records.parquet/%2e%2e.parquet",
    "records.parquet/.parquet",
    "records.parquet/.hidden.parquet",
    "records.parquet/_log.parquet",
    "records.parquet/é.parquet",
    "records.parquet/\u202ea.parquet",
    "records.parquet/a.parquet\n",
    "records.parquet/\N{FULLWIDTH SOLIDUS}.parquet",
    "records.parquet/" + "a" * 300 + ".parquet",
    "delivery.json",
)


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_in_names(name: str) -> None:
    with pytest.raises(ValidationError):
        ordered(name)


def test_nobody_waits_while_a_large_file_is_kept(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    writer = upload_.begin(0)
    writer.append(DATA)

    def keep(path: Path) -> None:
        upload_.finish(lambda path: pytest.fail("kept twice"))
        with pytest.raises(RequestRefusedError, match="Another request"):
            writer.append(b"")
        upload_.begin(len(DATA))

    upload_.finish(keep)
    assert not upload_.path.exists()


def test_who_began_before_a_wrong_digest_was_found_writes_no_more(tmp_path: Path) -> None:
    upload_ = upload(tmp_path)
    upload_.begin(0).append(b"x" * len(DATA))
    late = upload_.begin(len(DATA))
    with pytest.raises(RequestRefusedError, match="SHA-256"):
        upload_.finish(lambda path: pytest.fail("kept"))
    with pytest.raises(RequestRefusedError, match="Another request"):
        late.append(b"x")
    assert upload_.offset() == 0
