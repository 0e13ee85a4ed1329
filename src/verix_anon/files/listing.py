"""A submission's folder as it goes over a wire: files with sizes and digests, none in memory."""

import os
from dataclasses import dataclass
from hashlib import file_digest

from verix_anon.errors import TableError
from verix_anon.files.hashed import RECORDS, digest_of_parts
from verix_anon.files.store import Folder, reason
from verix_anon.files.submissions import CONTRACT, HEADER, open_submission
from verix_anon.protocol.contract import Contract

__all__ = ["Listed", "Sent", "list_submission"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One file of a submission."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A submission's folder, its records neither read into memory nor looked at."""

    folder: Folder
    contract: Contract
    n_rows: int
    digest: str
    files: tuple[Sent, ...]


def list_submission(path: str | os.PathLike[str]) -> Listed:
    """What a submission's folder holds; each file is hashed, a piece at a time.

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
        n_rows=stated.n_rows,
        digest=stated.submission,
        files=(*(_sent(folder, name) for name in (HEADER, CONTRACT)), *parts),
    )


def _sent(folder: Folder, name: str) -> Sent:
    with folder.open(name) as file:
        try:
            digest = file_digest(file, "sha256")  # type: ignore[arg-type]
            return Sent(name=name, size=file.tell(), sha256=digest.hexdigest())
        except OSError as error:
            raise TableError(f"{name} cannot be read ({reason(error)})") from None
