"""Tables in memory, of whichever library, as something that can be read more than once."""

import narwhals as nw
import pyarrow as pa
from narwhals.dependencies import is_polars_lazyframe
from narwhals.exceptions import DuplicateError

from verix_anon.errors import TableError
from verix_anon.files.tables.opening import reason

__all__ = ["held"]


def held(table: object) -> object:
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
        return _read(table)
    except DuplicateError:
        return table  # whoever reads it says which name occurs twice
    except Exception as error:
        # A query of any engine runs only now, and fails with that engine's own errors.
        raise TableError(f"the table cannot be read ({reason(error)})") from None


def _read(table: object) -> object:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except pa.ArrowInvalid:
        return table  # a stream of one column is no table
    return reader.read_all()
