"""Parquet, Feather and Arrow's own files and streams: typed columns, read as they are."""

from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.files.tables.opening import check_names

__all__ = ["read_ipc", "read_parquet"]

MAGIC = b"ARROW1"


def read_parquet(file: IO[bytes]) -> pa.Table:
    """Read a Parquet file."""
    # pq.read_table would import what reads folders of files, and pandas with it.
    parquet = pq.ParquetFile(file)
    check_names(parquet.schema_arrow.names)
    return parquet.read()


def read_ipc(file: IO[bytes]) -> pa.Table:
    """Read a Feather file, or an Arrow file or stream, whichever it is."""
    head = file.read(len(MAGIC))
    file.seek(0)
    if head[:4] == b"FEA1":
        raise ValueError("it is of the first version of Feather; write it again with a newer one")
    source = pa.ipc.open_file(file) if head == MAGIC else pa.ipc.open_stream(file)
    check_names(source.schema.names)
    table = source.read_all()
    # Offsets that lead out of their buffers would be followed later.
    table.validate(full=True)
    return table
