"""How far a job is: what lies in its folder tells, whoever put it there."""

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verix_anon.client.verdict import Outcome, Verdict, read_verdict
from verix_anon.errors import Error, TableError
from verix_anon.files.deliveries import read_header

__all__ = [
    "DELIVERY",
    "EXPLORED",
    "LOG",
    "MANIFEST",
    "PREVIEW",
    "RELEASED",
    "REPORT",
    "ROLES",
    "SHEET",
    "SUBMISSION",
    "VERDICT",
    "Job",
    "State",
    "Step",
    "find_job",
    "jobs_in",
    "look_at",
    "new_job",
    "released_files",
    "report_of",
]

ROLES = "roles.toml"
EXPLORED = "explore.json"
SUBMISSION = "submission"
MANIFEST = "manifest.verix"
DELIVERY = "delivery"
VERDICT = "verdict.json"
REPORT = "verdict.html"
SHEET = "sheet.json"
PREVIEW = "preview.json"
RELEASED = "released"
"""The name of the table to publish, without its ending."""
LOG = "audit.jsonl"
SCHEMA = "*.schema.json"
"""What `release` puts beside each table that it writes."""
KNOWN = (ROLES, SUBMISSION, MANIFEST, DELIVERY, VERDICT, LOG)
NAME = re.compile(r"\w[\w .+-]{0,79}")


class State(StrEnum):
    """What has been done with a job, the last of it."""

    NEW = "new"
    DRAFTED = "drafted"
    PREPARED = "prepared"
    DELIVERED = "delivered"
    VERIFIED = "verified"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    RELEASED = "released"


class Step(StrEnum):
    """What is to be done with a job, in this order."""

    TABLE = "table"
    COLUMNS = "columns"
    PRIVACY = "privacy"
    SEND = "send"
    VERDICT = "verdict"
    RELEASE = "release"


STEPS = tuple(Step)
NEXT = {
    State.NEW: Step.TABLE,
    State.DRAFTED: Step.COLUMNS,
    State.PREPARED: Step.SEND,
    State.DELIVERED: Step.VERDICT,
    State.VERIFIED: Step.RELEASE,
    State.VIOLATION: Step.VERDICT,
    State.INCONCLUSIVE: Step.VERDICT,
    State.RELEASED: Step.RELEASE,
}
JUDGED = {
    Outcome.VERIFIED: State.VERIFIED,
    Outcome.VIOLATION: State.VIOLATION,
    Outcome.INCONCLUSIVE: State.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job's folder, and how far it is."""

    folder: Path
    state: State
    table: Path | None = None
    """Where its table lies, if the roles file says so."""
    problem: str = ""
    """What in it cannot be read."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.folder.name

    @property
    def step(self) -> Step:
        """What is to be done next."""
        return NEXT[self.state]

    @property
    def open_steps(self) -> tuple[Step, ...]:
        """What can be looked at or done."""
        last = Step.SEND if self.state is State.DRAFTED else self.step
        return STEPS[: STEPS.index(last) + 1]

    @property
    def is_prepared(self) -> bool:
        """Whether its submission is made, so that roles and contract stand."""
        return self.state not in (State.NEW, State.DRAFTED)

    def path(self, name: str) -> Path:
        """Where something of it lies, or would."""
        return self.folder / name


def look_at(folder: Path) -> Job:
    """How far the job in a folder is."""
    try:
        table = _table(folder / ROLES)
        return Job(folder=folder, state=_state(folder), table=table)
    except Error as error:
        return Job(folder=folder, state=_without_verdict(folder), problem=str(error))


def _state(folder: Path) -> State:
    if (folder / DELIVERY).is_dir() and (folder / VERDICT).is_file():
        verdict = read_verdict(folder / VERDICT)
        # A verdict on another delivery says nothing of the one that lies here.
        if _is_on(verdict, folder / DELIVERY):
            is_out = verdict.accepted and any(folder.glob(SCHEMA))
            return State.RELEASED if is_out else JUDGED[verdict.outcome]
    return _without_verdict(folder)


def _is_on(verdict: Verdict, delivery: Path) -> bool:
    if not verdict.files and not verdict.accepted:
        # It was on what cannot be read, which has no root; nobody can take it for a pass.
        return True
    return verdict.root == read_header(delivery).root


def report_of(job: Job, verdict: Verdict) -> Path | None:
    """The report that lies beside a verdict, if it is on that one."""
    path = job.path(REPORT)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    title = f"<title>{verdict.outcome.value}:"
    told = (title, verdict.root.hex(), verdict.time[:19].replace("T", " "))
    return path if all(each in text for each in told) else None


def released_files(job: Job) -> list[Path]:
    """What is to be published: each table that was released, and its dictionary."""
    found = []
    for schema in sorted(job.folder.glob(SCHEMA)):
        stem = schema.name.removesuffix(SCHEMA[1:])
        tables = (path for path in job.folder.iterdir() if path.name.startswith(f"{stem}."))
        found += [p for p in sorted(tables) if p != schema and p.is_file() and not p.is_symlink()]
        found.append(schema)
    return found


def _without_verdict(folder: Path) -> State:
    if (folder / MANIFEST).is_file():
        return State.DELIVERED if (folder / DELIVERY).is_dir() else State.PREPARED
    return State.DRAFTED if (folder / ROLES).is_file() else State.NEW


def _table(roles: Path) -> Path | None:
    """The table that a roles file names, from its own folder; what is no such file names none."""
    try:
        named = tomllib.loads(roles.read_text(encoding="utf-8")).get("table")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{roles} cannot be read ({error})") from None
    return (roles.parent / named).resolve() if isinstance(named, str) and named else None


def jobs_in(folder: Path) -> list[Job]:
    """The jobs in a folder, by name: folders that hold something of a job, or nothing yet."""
    found = []
    for path in folder.iterdir():
        if path.name.startswith(".") or path.is_symlink() or not path.is_dir():
            continue
        names = {entry.name for entry in path.iterdir()}
        if not names or names.intersection(KNOWN):
            found.append(look_at(path))
    return sorted(found, key=lambda job: job.name.lower())


def find_job(folder: Path, name: str) -> Job:
    """The job of that name.

    Raises:
        TableError: There is no such folder.
    """
    path = folder / name
    is_name = name == path.name and not name.startswith(".") and "\0" not in name
    if not is_name or path.is_symlink() or not path.is_dir():
        raise TableError(f"there is no job {name!r} in {folder}")
    return look_at(path)


def new_job(folder: Path, name: str) -> Job:
    """An empty folder for a job, for its owner alone.

    Raises:
        TableError: There is one of that name, or it is no name for a folder.
    """
    name = name.strip()
    if not NAME.fullmatch(name) or name.endswith("."):
        raise TableError(
            "a job's name has up to 80 letters, digits, spaces and . _ + -, and begins with a"
            " letter or digit"
        )
    try:
        (folder / name).mkdir(mode=0o700)
    except FileExistsError:
        raise TableError(f"there is a {name!r} in {folder} already; choose another name") from None
    except OSError as error:
        raise TableError(f"the folder {name!r} cannot be made ({error.strerror})") from None
    return look_at(folder / name)
