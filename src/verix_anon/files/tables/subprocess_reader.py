"""Run the readers of binary tables in a process of their own, with a limit to its memory.

Two cells far apart, or a header that lies, can make a reader ask for all the memory there is, and
the compiled ones then end their process. So theirs is not ours: it returns the table as a stream
of Arrow data, or a sentence.

How much memory is likely depends on the size of the file. The size that a zip declares is a claim,
so .xlsx and .ods are unpacked once before, to count what a reader would meet.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.table_form import Read, Reading
from verix_anon.machine import available_memory
from verix_anon.platform import limit_memory

USUAL = 1 << 30
"""Bytes that any table may take to read."""
REFUSED, LACKING = 3, 4
NOTES = b"notes"
RUN = f"import sys; from {__name__} import main; sys.exit(main(*sys.argv[1:]))"
# Threads of libraries reserve memory that no one uses, and here it would count.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
MOST_ENTRIES = 10_000
USUAL_UNPACKED = 100 << 20
"""Unpacked bytes of a zip that are never too many."""
MOST_TIMES = 100
"""How many times larger than packed a sheet may be beyond that; real ones are 5 to 30 times."""
PART = 1 << 20
OVERLAP = 256
"""Bytes of a part that are looked at again with the next, for what lies across both."""
ERRORS = re.compile(rb'<c [^>]{0,200}?t="e"|calcext:value-type="error"')
ZEROS = re.compile(rb'formatCode="0{2,}"')


def read_apart(reader: str, path: str, reading: Reading) -> Read:
    """Read a file with `sheet`, `statistics` or `ipc`.

    Raises:
        TableError: Begins with what is wrong, for the caller to put the name before.
    """
    size, notes = Path(path).stat().st_size, []
    if reader == "sheet":
        with Path(path).open("rb") as file:
            if file.read(2) == b"PK":
                unpacked = _unpacked(file, size)
                size, notes = unpacked.size, unpacked.notes()
    room = min(USUAL + 64 * size, available_memory() or sys.maxsize)
    packed = json.dumps(reading.to_json())
    # -P: what lies in the user's folder is data, never a module.
    command = [sys.executable, "-P", "-c", RUN, reader, path, str(room), packed]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603, because the command is our own
            command, stdout=subprocess.PIPE, stderr=said, env={**os.environ, **ENVIRONMENT}
        )
        with process:
            assert process.stdout is not None
            try:
                with pa.ipc.open_stream(process.stdout) as stream:
                    table = stream.read_all()
            except pa.ArrowException:
                table = None  # it ended before it was done, and below is why
        said.seek(0)
        if process.returncode == 0 and table is not None:
            metadata = dict(table.schema.metadata)
            notes = [*json.loads(metadata.pop(NOTES)), *notes]
            return Read(table.replace_schema_metadata(metadata), reading, tuple(notes))
        raise _failure(process.returncode, said.read().decode(errors="replace"), room)


@dataclass(slots=True)
class _Unpacked:
    """What was met while a zip was unpacked."""

    size: int = 0
    n_errors: int = 0
    pads_numbers: bool = False
    """Whether some numbers are shown with leading zeros that they do not have."""

    def notes(self) -> list[str]:
        """What no reader would say of it."""
        said = []
        if self.n_errors:
            said.append(
                f"{self.n_errors:,} cells hold an error, such as #N/A or #DIV/0!: they are missing"
            )
        if self.pads_numbers:
            said.append(
                "the file shows some numbers with leading zeros, by a format such as 00000: they"
                " are read as the numbers they are; where they are codes, make them text there"
            )
        return said


def _unpacked(file: IO[bytes], packed: int) -> _Unpacked:
    """Raise unless the file is a zip that unpacks to what its size makes likely."""
    most = max(USUAL_UNPACKED, MOST_TIMES * packed)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > most:
                raise _too_large(packed)
            found = _Unpacked()
            for entry in entries:
                _count(archive, entry, found, most)
                if found.size > most:
                    raise _too_large(packed)
            return found
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TableError(f"cannot be read ({error})") from None


def _count(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, found: _Unpacked, most: int) -> None:
    is_sheet = entry.filename.startswith("xl/worksheets/") or entry.filename == "content.xml"
    before = b""
    with archive.open(entry) as part:
        while data := part.read(PART):
            found.size += len(data)
            if found.size > most:
                return
            seen = before + data
            if is_sheet:
                # What lies whole in the bytes carried over was counted with the part before.
                found.n_errors += sum(hit.end() > len(before) for hit in ERRORS.finditer(seen))
            elif entry.filename == "xl/styles.xml":
                found.pads_numbers |= ZEROS.search(seen) is not None
            before = seen[-OVERLAP:]


def _too_large(packed: int) -> TableError:
    return TableError(
        f"unpacks to more than {MOST_TIMES} times its {packed:,} bytes, as no table does; save it"
        " again as CSV or Parquet"
    )


def _failure(code: int, said: str, room: int) -> TableError:
    if code == REFUSED:
        return TableError(said.strip().splitlines()[-1])
    if code == LACKING or "memory allocation" in said or "bad_alloc" in said:
        return TableError(
            f"takes more than {room / 1e9:.1f} GB to read, far more than its size makes likely;"
            " save it again as CSV or Parquet"
        )
    if code > 0:
        raise AssertionError(f"the reader of tables failed: {said}")
    return TableError("cannot be read (its content makes the reader crash)")


def main(reader: str, path: str, room: str, reading: str) -> int:
    """Read a table and write it to stdout; the exit code says what became of it."""
    # Loaded before memory is limited, and only the one that is needed: the others are extras.
    read: Callable[[str, Reading], tuple[pa.Table, list[str]]]
    if reader == "sheet":
        from verix_anon.files.tables.spreadsheets import read_sheet as read
    elif reader == "ipc":
        from verix_anon.files.tables.arrow_files import read_ipc as read
    else:
        from verix_anon.files.tables.statistics_files import read_statistics as read
    given = Reading.from_json(Fields(json.loads(reading), "reading", TableError))
    limit_memory(int(room))
    try:
        table, notes = read(path, given)
        metadata = {**(table.schema.metadata or {}), NOTES: json.dumps(notes).encode()}
        table = table.replace_schema_metadata(metadata)
        with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
            stream.write_table(table)
    except TableError as error:
        print(" ".join(str(error).splitlines()), file=sys.stderr)
        return REFUSED
    except (MemoryError, pa.ArrowMemoryError):
        return LACKING
    return 0
