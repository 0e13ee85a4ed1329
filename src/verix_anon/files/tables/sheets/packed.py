"""The zip around .xlsx and .ods, unpacked once for its true size before a reader takes it.

What it declares is a claim; what is counted here is what a reader would meet.
"""

import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO

from verix_anon.errors import TableError

__all__ = ["Unpacked", "check_packed"]

MOST_ENTRIES = 10_000
USUAL = 100 << 20
"""Unpacked bytes that are never too many."""
MOST_TIMES = 100
"""How many times larger than packed a sheet may be beyond that; real ones are 5 to 30 times."""
PART = 1 << 20
ERRORS = re.compile(rb'<c [^>]{0,200}?t="e"|calcext:value-type="error"')
ZEROS = re.compile(rb'formatCode="0{2,}"')
OVERLAP = 256
"""Bytes of a part that are looked at again with the next, for what lies across both."""


@dataclass(slots=True)
class Unpacked:
    """What was met on the way."""

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


def check_packed(file: IO[bytes], packed: int) -> Unpacked:
    """Raise unless the file is a zip that unpacks to what its size makes likely."""
    most = max(USUAL, MOST_TIMES * packed)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > most:
                raise _too_large(packed)
            found = Unpacked()
            for entry in entries:
                _count(archive, entry, found, most)
                if found.size > most:
                    raise _too_large(packed)
            return found
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise TableError(f"cannot be read ({error})") from None


def _count(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, found: Unpacked, most: int) -> None:
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
