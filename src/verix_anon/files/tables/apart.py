"""Readers in a process of their own, which may take only so much memory.

Two cells far apart, or a header that lies, can make a reader ask for all the memory there is, and
the compiled ones then end their process. So theirs is not ours: it returns the table as a stream
of Arrow data, or a sentence.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.tables.reading import Read, Reading
from verix_anon.machine import available_memory

__all__ = ["read_apart"]

USUAL = 1 << 30
"""Bytes that any table may take to read."""
REFUSED, LACKING = 3, 4
NOTES = b"notes"
RUN = f"import sys; from {__name__} import main; sys.exit(main(*sys.argv[1:]))"
# Threads of libraries reserve memory that nobody uses, and here it would count.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def read_apart(reader: str, path: str, size: int, reading: Reading) -> Read:
    """Read with `sheet`, `statistics` or `ipc`; `size` is how many bytes there are to be read.

    Raises:
        TableError: Begins with what is wrong, for the caller to put the name before.
    """
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
            notes = json.loads(metadata.pop(NOTES))
            return Read(table.replace_schema_metadata(metadata), reading, tuple(notes))
        raise _failure(process.returncode, said.read().decode(errors="replace"), room)


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


def _reader(name: str) -> Callable[[str, Reading], tuple[pa.Table, list[str]]]:
    if name == "sheet":
        from verix_anon.files.tables.sheets.reading import read_sheet

        return read_sheet
    if name == "ipc":
        from verix_anon.files.tables.arrow import read_ipc

        return read_ipc
    from verix_anon.files.tables.statistics.reading import read_statistics

    return read_statistics


def _limit(room: int) -> None:
    """No more memory than `room` beyond what is in use."""
    pages = Path("/proc/self/statm")
    used = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    # Whoever started us may have set a limit of their own, which cannot be raised.
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = used + room if hard == resource.RLIM_INFINITY else min(used + room, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(reader: str, path: str, room: str, reading: str) -> int:
    """Read a table and write it to stdout; the exit code says what became of it."""
    read = _reader(reader)
    given = Reading.from_json(Fields(json.loads(reading), "reading", TableError))
    _limit(int(room))
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
