"""Lists the files of a submission with sizes and digests, without reading them into memory."""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.hashed_files import digest_of_parts
from verix_anon.files.job_folder import CONTRACT, RECORDS, SUBMISSION_HEADER
from verix_anon.files.store import MAX_ENTRIES, FilePath, Folder, open_folder, reason
from verix_anon.files.submissions import MAX_CONTRACT_BYTES, MAX_HEADER_BYTES, open_submission
from verix_anon.protocol.contract import Contract
from verix_anon.protocol.providers import File
from verix_anon.protocol.records import MAX_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Files that go over a wire as a submission, whether or not they are one."""

    folder: Folder
    terms: bytes
    """What contract.json holds"""
    n_rows: int
    digest: str
    files: tuple[File, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Parcel):
    """A submission's folder, whose records are neither loaded nor checked."""

    contract: Contract


def list_submission(path: FilePath) -> Listed:
    """List a submission's folder. Each file is hashed a piece at a time.

    Raises:
        ContractError: contract.json is not a contract.
        TableError: a file is missing, or is not the one that submission.json names.
    """
    stated = open_submission(path)
    folder = stated.files.folder
    parts = [_sent(folder, name) for name in folder.parts(RECORDS)]
    stated.files.digests[RECORDS] = (
        parts[0].sha256
        if parts[0].name == RECORDS
        else digest_of_parts(
            (part.name.removeprefix(f"{RECORDS}/"), bytes.fromhex(part.sha256)) for part in parts
        )
    )
    stated.check_files()
    return Listed(
        folder=folder,
        contract=stated.contract,
        terms=stated.contract.to_bytes(),
        n_rows=stated.n_rows,
        digest=stated.submission,
        files=(*(_sent(folder, name) for name in (SUBMISSION_HEADER, CONTRACT)), *parts),
    )


def list_as_is(path: FilePath) -> Parcel:
    """List the files of a folder whatever they hold, to try what a service does with them.

    Raises:
        TableError: There is no such folder, or it cannot be read.
    """
    folder = open_folder(path, TableError)
    names = [name for name in (SUBMISSION_HEADER, CONTRACT) if folder.has(name)]
    if folder.is_folder(RECORDS):
        names += [f"{RECORDS}/{name}" for name in _within(folder.folder(RECORDS))]
    elif folder.has(RECORDS):
        names.append(RECORDS)
    n_rows = 1
    if SUBMISSION_HEADER in names:
        with suppress(TableError):
            header = folder.read(SUBMISSION_HEADER, limit=MAX_HEADER_BYTES)
            fields = Fields.parse(header, SUBMISSION_HEADER, TableError)
            n_rows = fields.whole("rows", range(1, MAX_ROWS + 1))
    files = tuple(_sent(folder, name) for name in names)
    listed = "".join(file.sha256 for file in files).encode()
    return Parcel(
        folder=folder,
        terms=folder.read(CONTRACT, limit=MAX_CONTRACT_BYTES) if CONTRACT in names else b"{}",
        n_rows=n_rows,
        digest=sha256(listed).hexdigest(),
        files=files,
    )


def _within(folder: Folder) -> list[str]:
    """All files in a folder and in those within it, except the marks that a writer left."""
    entries = folder.entries(most=MAX_ENTRIES)
    names = [e.name for e in entries if not (e.is_folder or e.name.startswith("_"))]
    for inner in (entry.name for entry in entries if entry.is_folder):
        names += [f"{inner}/{name}" for name in _within(folder.folder(inner))]
    return names


def _sent(folder: Folder, name: str) -> File:
    with folder.open(name) as file:
        try:
            digest = file_digest(file, "sha256")  # type: ignore[arg-type]
            return File(name=name, size=file.tell(), sha256=digest.hexdigest())
        except OSError as error:
            raise TableError(f"{name} cannot be read ({reason(error)})") from None
