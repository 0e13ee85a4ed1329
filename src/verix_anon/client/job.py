"""Tell how far a job is, from the files in its folder; it does not matter who put them there."""

import os
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verix_anon.client.owner_files import read_verdict
from verix_anon.client.report import is_report_of
from verix_anon.client.verdict import Verdict
from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields
from verix_anon.files.desk_folder import DEVICE, is_text
from verix_anon.files.folder_facts import read_header
from verix_anon.files.job_folder import (
    AUDIT_LOG,
    DELIVERY,
    MANIFEST,
    REPORT,
    ROLES,
    SHEET,
    SUBMISSION,
    VERDICT,
)
from verix_anon.files.tables.file_kinds import TAKEN

SCHEMA = "*.schema.json"
"""The dictionary that `release` writes beside each table."""
OURS = b'"verix/schema/'
"""What every such dictionary has in its first bytes."""
BEGINNING = 64
KNOWN = (ROLES, SUBMISSION, MANIFEST, DELIVERY, VERDICT, AUDIT_LOG)
NAME = re.compile(r"\w[\w .+-]{0,79}")


class JourneyState(StrEnum):
    """The last thing that was done with a job, or its outcome."""

    NEW = "new"
    DRAFTED = "drafted"
    PREPARED = "prepared"
    DELIVERED = "delivered"
    VERIFIED = "verified"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    RELEASED = "released"


class JourneyStep(StrEnum):
    """The steps of a job, in their order."""

    TABLE = "table"
    COLUMNS = "columns"
    PRIVACY = "privacy"
    SEND = "send"
    VERDICT = "verdict"
    RELEASE = "release"


STEPS = tuple(JourneyStep)
OF_ROLES = frozenset({JourneyStep.COLUMNS, JourneyStep.PRIVACY})
"""The steps that only change the roles file."""
NEXT = {
    JourneyState.NEW: JourneyStep.TABLE,
    JourneyState.DRAFTED: JourneyStep.COLUMNS,
    JourneyState.PREPARED: JourneyStep.SEND,
    JourneyState.DELIVERED: JourneyStep.VERDICT,
    JourneyState.VERIFIED: JourneyStep.RELEASE,
    JourneyState.VIOLATION: JourneyStep.VERDICT,
    JourneyState.INCONCLUSIVE: JourneyStep.VERDICT,
    JourneyState.RELEASED: JourneyStep.RELEASE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job's folder, and how far it is."""

    folder: Path
    state: JourneyState
    table: Path | None = None
    """Where its table lies, if the roles file says so."""
    has_roles: bool = True
    """Whether the roles file lies in the folder; a command may use one from elsewhere."""
    problem: str = ""
    """Why a file of the job cannot be read; empty if all can be."""

    @property
    def name(self) -> str:
        """The name of the job's folder."""
        return self.folder.name

    @property
    def step(self) -> JourneyStep:
        """The next step."""
        return NEXT[self.state]

    @property
    def open_steps(self) -> tuple[JourneyStep, ...]:
        """The steps that can be looked at or done now."""
        last = JourneyStep.SEND if self.state is JourneyState.DRAFTED else self.step
        found = STEPS[: STEPS.index(last) + 1]
        return tuple(step for step in found if self.has_roles or step not in OF_ROLES)

    @property
    def is_prepared(self) -> bool:
        """Whether the submission was made, which fixes roles and contract."""
        return self.state not in (JourneyState.NEW, JourneyState.DRAFTED)

    def path(self, name: str) -> Path:
        """Return where a file of the job is, or would be."""
        return self.folder / name


def look_at(folder: Path) -> Job:
    """Find out how far the job in a folder is."""
    has_roles = (folder / ROLES).is_file()
    try:
        table = _table(folder / ROLES)
        return Job(folder=folder, state=_state(folder), table=table, has_roles=has_roles)
    except Error as error:
        state = _without_verdict(folder)
        return Job(folder=folder, state=state, has_roles=has_roles, problem=str(error))


def _state(folder: Path) -> JourneyState:
    if (folder / DELIVERY).is_dir() and (folder / VERDICT).is_file():
        verdict = read_verdict(folder / VERDICT)
        # A verdict on unreadable bytes has no root, and cannot be mistaken for a pass.
        is_unread = not verdict.files and not verdict.accepted
        # A verdict on another delivery says nothing about the one in this folder.
        if is_unread or verdict.root == read_header(folder / DELIVERY).root:
            if verdict.accepted and _is_released(folder, verdict):
                return JourneyState.RELEASED
            return JourneyState(verdict.outcome.value.lower())
    return _without_verdict(folder)


def report_of(job: Job, verdict: Verdict) -> Path | None:
    """Return the report beside a verdict, or None if it is about another verdict."""
    path = job.path(REPORT)
    return path if is_report_of(path, verdict) else None


def _is_released(folder: Path, verdict: Verdict) -> bool:
    """Whether the folder has a released table; if the sheet names a root, it must be this one."""
    if not _schemas(folder):
        return False
    try:
        sheet = Fields.parse((folder / SHEET).read_bytes(), SHEET, TableError)
        return sheet.values.get("root", verdict.root.hex()) == verdict.root.hex()
    except (OSError, TableError):
        return True


def _schemas(folder: Path) -> list[Path]:
    """Return the dictionaries of released tables, not other files with such names."""
    return [p for p in sorted(folder.glob(SCHEMA)) if _is_file(p) and OURS in _beginning(p)]


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(BEGINNING)
    except OSError:
        return b""


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def released_files(job: Job) -> list[Path]:
    """Return the files to publish: each table that was released, and its dictionary.

    The owner's own table is left out, even if it has the same name with another ending. If two
    tables could be the released one, both are left out.
    """
    found = []
    for schema in _schemas(job.folder):
        stem = schema.name.removesuffix(SCHEMA[1:])
        named = [job.path(f"{stem}{ending}") for ending in TAKEN]
        tables = [p for p in named if _is_file(p) and p.resolve() != job.table]
        found += [*(tables if len(tables) == 1 else ()), schema]
    return found


def _without_verdict(folder: Path) -> JourneyState:
    if (folder / MANIFEST).is_file():
        return JourneyState.DELIVERED if (folder / DELIVERY).is_dir() else JourneyState.PREPARED
    return JourneyState.DRAFTED if (folder / ROLES).is_file() else JourneyState.NEW


def _table(roles: Path) -> Path | None:
    """Return the path of the table that a roles file names, or None if it names none."""
    try:
        named = tomllib.loads(roles.read_text(encoding="utf-8")).get("table")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise TableError(f"{roles} cannot be read ({error})") from None
    if not isinstance(named, str) or not named or "\0" in named:
        return None
    return (roles.parent / named).resolve()


def jobs_in(folder: Path) -> list[Job]:
    """Return the jobs in a folder, by name.

    A job is a folder with a file of a job in it, an empty one, which was just begun, or one that
    holds only tables.
    """
    found = []
    for path in folder.iterdir():
        if path.name.startswith(".") or not is_text(path.name):
            continue
        with suppress(OSError):  # The folder may belong to another user, or be gone.
            if path.is_symlink() or not path.is_dir():
                continue
            names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
            if names.intersection(KNOWN) or all(name.lower().endswith(TAKEN) for name in names):
                found.append(look_at(path))
    return sorted(found, key=lambda job: job.name.lower())


def find_job(folder: Path, name: str) -> Job:
    """Return the job of that name.

    Raises:
        TableError: There is no such folder.
    """
    path = folder / name
    is_name = name == path.name and not name.startswith(".") and "\0" not in name
    # Unlike the methods of Path, these return False for a name that is too long.
    if not is_name or os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114
        raise TableError(f"there is no job {name!r} in {folder}")
    return look_at(path)


def new_job(folder: Path, name: str) -> Job:
    """Make an empty folder for a job, which only its owner can read.

    Raises:
        TableError: A folder of that name exists, or the name is not one for a folder.
    """
    name = name.strip()
    if not NAME.fullmatch(name) or name.endswith(".") or DEVICE.fullmatch(name):
        raise TableError(
            "a job's name has up to 80 letters, digits, spaces and . _ + -, and begins with a"
            " letter or digit; con, nul and the like are names of devices on Windows"
        )
    try:
        (folder / name).mkdir(mode=0o700)
    except FileExistsError:
        raise TableError(f"there is a {name!r} in {folder} already; choose another name") from None
    except OSError as error:
        raise TableError(f"the folder {name!r} cannot be made ({error.strerror})") from None
    return look_at(folder / name)
