"""The owner's commands when the disk or the process fails at the n-th write, name or sync.

`python -m cli.faults FOLDER COMMAND` ends a process at each of them in turn, on the job in that
folder, and says how many there are.
"""

import errno
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cli.jobs import exit_code, release_arguments, verify_arguments
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.ledger import Ledger
from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import read_verdict
from verix_anon.files import atomic_write, folder_writer, json_lines
from verix_anon.files.submissions import read_submission
from verix_anon.files.tables import Reading, read_table, table_writer

KILLED, FAILED = -signal.SIGKILL, 99
MOST = 300
OLD = '"of an older release"'
BESIDE = ("released.schema.json", "sheet.json")
READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".csv": pyarrow.csv.read_csv,
    ".parquet": pq.read_table,
    ".feather": pyarrow.feather.read_table,
    ".xlsx": partial(read_table, reading=Reading(sheet="Table")),
    ".sav": read_table,
    ".dta": read_table,
}
Command = Callable[[Path], int]
Check = Callable[[Path], None]


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Faults:
    """Every call that changes the disk counts; the n-th fails when it is half done."""

    def __init__(self, n: int, fail: Callable[[], None]) -> None:
        self.left, self.fail = n, fail

    def strike(self) -> bool:
        self.left -= 1
        return self.left == 0

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*given: Any, **named: Any) -> Any:
            if self.strike():
                self.fail()
            return call(*given, **named)

        return struck

    def write(self, descriptor: int, data: memoryview) -> int:
        if self.strike():
            os.write(descriptor, data[: len(data) // 2])
            self.fail()
        return os.write(descriptor, data)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT and self.strike():
            self.fail()
        return os.open(path, flags, mode)

    def table(self, call: Callable[..., None], at: int) -> Callable[..., None]:
        def struck(*given: Any) -> None:
            if self.strike():
                Path(given[at]).write_bytes(b"half of a table")
                self.fail()
            call(*given)
            if self.strike():
                os.truncate(given[at], Path(given[at]).stat().st_size // 2)
                self.fail()

        return struck


class System:
    """The module `os`, in part by somebody else."""

    def __init__(self, faults: Faults) -> None:
        self.open, self.write, self.fsync = faults.open, faults.write, faults.counted(os.fsync)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@contextmanager
def failing(n: int, fail: Callable[[], None]) -> Iterator[Faults]:
    """Let the n-th change of the disk fail."""
    faults = Faults(n, fail)
    with pytest.MonkeyPatch.context() as patch:
        for module in (atomic_write, json_lines):
            patch.setattr(module, "os", System(faults))
        for name in ("replace", "rename", "mkdir", "unlink"):
            patch.setattr(Path, name, faults.counted(getattr(Path, name)))
        write = faults.table(folder_writer.write_parquet, 0)
        patch.setattr(folder_writer, "write_parquet", write)
        # Of every format, before its writer begins and when half of it is on the disk.
        patch.setattr(table_writer, "_write", faults.table(table_writer._write, 1))
        yield faults


def prepare(folder: Path) -> int:
    # Without a target there is no model to wait for.
    how = ("--task", "none", "--quasi", "all", "--unsafe-seed", "7", "--quiet")
    return exit_code("prepare", folder / "people.parquet", "--out", folder / "again", *how)


def verify(folder: Path) -> int:
    made = ("--out", folder / "new.json", "--overwrite")
    return exit_code(*verify_arguments(folder), "--skip", "fingerprint,utility", *made)


def release(folder: Path, ending: str = "csv") -> int:
    return release_alone(folder, ending, "--privacy-sheet", folder / "sheet.json")


def release_alone(folder: Path, ending: str = "csv", *more: object) -> int:
    made = ("--out", folder / f"released.{ending}", "--overwrite", *more)
    return exit_code(*release_arguments(folder), *made)


def release_over(folder: Path) -> int:
    """Where an older table stands under each name, with what belongs to it."""
    if not (folder / "ledger.jsonl").exists():
        for name in ("released.csv", *BESIDE):
            (folder / name).write_text(OLD)
    return release(folder)


def run(folder: Path) -> int:
    """The whole journey, which goes on where it was ended before."""
    how = ("--task", "none", "--quasi", "all", "--unsafe-seed", "7", "--quiet", "--resume")
    made = ("--out", folder / "again", "--release", folder / "released.csv")
    less = ("--skip-layers", "fingerprint,utility")
    return exit_code("run", folder / "people.parquet", *made, *how, *less)


def check_run(folder: Path) -> None:
    check_prepared(folder)
    again, released = folder / "again", folder / "released.csv"
    if not again.exists():
        assert not released.exists()
        return
    manifest = read_manifest(again / "manifest.verix")
    ledger = Ledger(folder / "ledger.jsonl")
    log = AuditLog(again / "audit.jsonl")
    lines = log.read(manifest.submission, ledger.audited(manifest.table))
    assert lines.warnings() == ()
    if (again / "verdict.json").exists():
        assert read_verdict(again / "verdict.json").accepted
        assert lines.about()
    seen = ledger.seen(manifest.table)
    assert len({entry.release for entry in seen}) <= 1
    if released.exists():
        assert seen
        assert {*map(Path.exists, (again / "sheet.json", folder / BESIDE[0]))} == {True}
        assert len(rows(released)) == manifest.n_genuine


def check_prepared(folder: Path) -> None:
    again = folder / "again"
    if again.exists():
        digest = read_submission(again / "submission").digest()
        manifest = read_manifest(again / "manifest.verix")
        assert digest == manifest.submission
        assert digest in [e.made for e in Ledger(folder / "ledger.jsonl").prepared(manifest.table)]


def check_verified(folder: Path) -> None:
    # Wherever the process ended, the log has every line that the ledger remembers.
    manifest = read_manifest(folder / "job" / "manifest.verix")
    remembered = Ledger(folder / "ledger.jsonl").audited(manifest.table)
    log = AuditLog(folder / "job" / "audit.jsonl")
    assert log.read(manifest.submission, remembered).warnings() == ()
    if (folder / "new.json").exists():
        verdict = read_verdict(folder / "new.json")
        assert verdict.accepted
        logged = [fields for fields in json_lines.read(folder / "job" / "audit.jsonl") if fields]
        assert verdict.root.hex() in [fields.values["root"] for fields in logged]


def check_released(folder: Path, beside: tuple[str, ...] = BESIDE) -> None:
    manifest = read_manifest(folder / "job" / "manifest.verix")
    seen = Ledger(folder / "ledger.jsonl").seen(manifest.table)
    # The very same release may be had again, and publishes nothing new.
    assert len(seen) <= 2
    assert len({entry.release for entry in seen}) <= 1
    texts = {name: (folder / name).read_text() for name in BESIDE if (folder / name).exists()}
    assert seen or {*texts.values()} <= {OLD}
    for text in texts.values():
        json.loads(text)
    for path in {*folder.glob("released.*")} - {folder / BESIDE[0]}:
        if path.read_bytes() == OLD.encode():
            assert texts == dict.fromkeys(beside, OLD)
            continue
        # No table without its line, its dictionary and its sheet.
        assert seen
        assert OLD not in texts.values()
        assert {*beside} <= {*texts}
        assert rows(path) == rows(folder / f"reference{path.suffix}")


def rows(path: Path) -> list[str]:
    """All rows, in an order that says nothing."""
    return sorted(map(str, READERS[path.suffix](path).to_pylist()))


def check_lines(folder: Path) -> None:
    """Every line is whole, but for one that was cut short; what comes next leaves none of those."""
    for path in (folder / "ledger.jsonl", folder / "job" / "audit.jsonl"):
        assert None not in json_lines.read(path)


COMMANDS: dict[str, tuple[Command, Check]] = {
    "prepare": (prepare, check_prepared),
    "verify": (verify, check_verified),
    "release": (release, check_released),
    "release_parquet": (partial(release, ending="parquet"), check_released),
    "release_over": (release_over, check_released),
    "release_feather": (partial(release, ending="feather"), check_released),
    "release_xlsx": (partial(release, ending="xlsx"), check_released),
    "release_sav": (partial(release, ending="sav"), check_released),
    "release_dta": (partial(release, ending="dta"), check_released),
    "release_alone": (release_alone, partial(check_released, beside=BESIDE[:1])),
    "run": (run, check_run),
}


def clean(folder: Path) -> None:
    """Leave the job as it was before the command."""
    for path in folder.glob("released.*"):
        path.unlink()
    for name in ("new.json", "sheet.json", "ledger.jsonl"):
        (folder / name).unlink(missing_ok=True)
    (folder / "job" / "audit.jsonl").unlink(missing_ok=True)
    for left in (*folder.glob(".*"), folder / "again"):
        if os.path.lexists(left):
            atomic_write._remove(left)


def in_a_child(command: Command, folder: Path, n: int = 0) -> int:
    """The exit code of a command that is ended at its n-th change of the disk."""
    child = os.fork()
    if child == 0:
        try:
            with failing(n, kill):
                os._exit(command(folder))
        except BaseException:
            traceback.print_exc()
            os._exit(FAILED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def checked(check: Check, folder: Path) -> bool:
    """Whether what is there is as it must be; in a child, for readers of tables start threads."""

    def both(folder: Path) -> int:
        check(folder)
        check_lines(folder)
        return 0

    return in_a_child(both, folder) == 0


def warm(folder: Path, name: str) -> None:
    """Import what every child would import anew, and nothing that starts a thread."""
    child = os.fork()
    if child == 0:
        COMMANDS[name][0](folder)
        (folder / "modules").write_text("\n".join(sys.modules))
        os._exit(0)
    os.waitpid(child, 0)
    for name in (folder / "modules").read_text().splitlines():
        with suppress(ImportError):
            import_module(name)


def kill_everywhere(folder: Path, name: str) -> int:
    """How often a command was ended before it came to its end."""
    command, check = COMMANDS[name]
    for n in range(1, MOST):
        clean(folder)
        code = in_a_child(command, folder, n)
        assert checked(check, folder), n
        if code != KILLED:
            assert code == 0
            return n - 1
        is_done = any(map(os.path.lexists, (folder / "again", *folder.glob("released.*"))))
        again = in_a_child(command, folder)
        # A job that was prepared is refused a second time.
        assert again == 0 or (again == 2 and is_done), (n, again)
        assert checked(check, folder), n
        # `run` may find all done and write no more; a line that was cut short then says nothing.
        if again == 0 and name != "run":
            assert not any(map(json_lines.is_cut_short, folder.rglob("*.jsonl")))
    raise AssertionError("it never ends")


if __name__ == "__main__":
    warm(Path(sys.argv[1]), sys.argv[2])
    print(kill_everywhere(Path(sys.argv[1]), sys.argv[2]))
