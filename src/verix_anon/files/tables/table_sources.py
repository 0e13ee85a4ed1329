"""Open the source of a table, such as a path or an fsspec URL, and say in a line what failed."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO
from urllib.parse import unquote

import narwhals as nw
import pyarrow as pa
from narwhals.dependencies import is_polars_lazyframe
from narwhals.exceptions import DuplicateError

from verix_anon.errors import TableError
from verix_anon.files.store import filesystem, is_url

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError)
MOST_COLUMNS = 1 << 14
"""As many as a sheet of Excel has."""
HIDDEN = "..."
SECRET_PARAMETER = re.compile(r"(?<=[?&])([^=&]*(?:pass|secret|token|key|sig)[^=&]*)=([^&]*)", re.I)


def opened(name: str) -> IO[bytes]:
    """The file to read from."""
    if is_url(name):
        fs, inner = filesystem(name)
        return fs.open(inner, "rb")  # type: ignore[no-any-return]
    if Path(name).is_dir():
        raise TableError(f"{name} is a folder, not a table")
    return Path(name).open("rb")


def collected(table: object) -> object:
    """A LazyFrame of polars collected, a stream of Arrow data read; all else as it is."""
    try:
        if is_polars_lazyframe(table):
            return table.collect()
        is_known = isinstance(
            nw.from_native(table, eager_only=True, pass_through=True), nw.DataFrame
        )
        if is_known or not hasattr(table, "__arrow_c_stream__"):
            return table
        # DuckDB's relations, readers of record batches, and whatever else speaks Arrow.
        try:
            reader = pa.RecordBatchReader.from_stream(table)
        except pa.ArrowInvalid:
            return table  # a stream of one column is not a table
        return reader.read_all()
    except DuplicateError:
        return table  # its reader says which name occurs twice
    except Exception as error:
        # A query of any engine runs only now, and fails with that engine's own errors.
        raise TableError(f"the table cannot be read ({reason(error)})") from None


def check_names(names: Sequence[str]) -> None:
    """Raise unless there are not too many columns, each with a name of its own."""
    if len(names) > MOST_COLUMNS:
        raise TableError(
            f"has {len(names):,} columns, and a table may have {MOST_COLUMNS:,}; leave out what is"
            " not needed"
        )
    for name, n in Counter(names).items():
        if n > 1:
            raise TableError(f"has the column name {name!r} twice; rename one of them")


def reason(error: Exception) -> str:
    """An error's own words, in one line."""
    return " ".join(str(error).split())[:300]


def shown_url(name: str) -> str:
    """A path as it is, a URL without what may be a password."""
    if not is_url(name):
        return name
    scheme, _, rest = name.partition("://")
    # By the last @: anyone who does not quote a password may have an @, / or ? in it.
    user, at, place = rest.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:{HIDDEN}"
    shown = f"{scheme}://{user}{at}{place}"
    return SECRET_PARAMETER.sub(rf"\1={HIDDEN}", shown)


def without_secrets(text: str, name: str) -> str:
    """What is said of a URL, unless it holds a password of it."""
    text = text.replace(name, shown_url(name))
    if not is_url(name):
        return text
    rest, secrets = name.partition("://")[2], [v for _, v in SECRET_PARAMETER.findall(name)]
    if "@" in rest:
        # The user's part ends at the last @ or at the first.
        users = (rest.rpartition("@")[0], rest.partition("@")[0])
        secrets += [user.partition(":")[2] for user in users]
    if any(each and each in text for secret in secrets for each in (secret, unquote(secret))):
        return "cannot be read (why is not shown, for the password stands in it)"
    return text
