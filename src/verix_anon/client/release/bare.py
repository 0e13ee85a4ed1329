"""Columns as values alone: what else a column carries is the owner's, and is not published.

Categories that do not occur are values of people who are not in the table; metadata, names of an
index and attributes hold whatever programs put there (spec §12).
"""

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from verix_anon.client.table.columns import without_views

__all__ = ["bare_array", "bare_frame"]


def bare_array(array: pa.Array) -> pa.Array:
    """The same values, on a type without metadata, with no category that does not occur."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return bare_array(array.storage)
    if pa.types.is_dictionary(kind):
        return _occurring(array)
    if pa.types.is_nested(kind):
        return pa.array(array.to_pylist(), _plain(kind))
    return without_views(array)


def _occurring(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """In their old order, which may be one of rank."""
    places = array.indices.drop_null().to_numpy(zero_copy_only=False)
    used = np.unique(places).astype(np.int64)
    moved = np.zeros(len(array.dictionary), np.int32)
    moved[used] = np.arange(used.size, dtype=np.int32)
    missing = array.indices.is_null().to_numpy(zero_copy_only=False)
    filled = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    taken = moved[filled] if moved.size else np.zeros(len(array), np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(taken, mask=missing),
        bare_array(array.dictionary.take(pa.array(used))),
        ordered=array.type.ordered,
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type like this one, and the types within it, without names' metadata or dictionaries."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def bare_frame(frame: nw.DataFrame[Any]) -> object:
    """A table of the owner's kind with nothing in it but its columns."""
    native = frame.to_native()
    if frame.implementation.is_pyarrow():
        columns = (native[name].combine_chunks() for name in frame.columns)
        return pa.table([bare_array(column) for column in columns], frame.columns)
    coded = [name for name, kind in frame.schema.items() if kind in (nw.Categorical, nw.Enum)]
    if frame.implementation.is_polars():
        return frame.with_columns(nw.col(*coded).cast(nw.String)).to_native() if coded else native
    native = native.reset_index(drop=True)
    native.attrs, native.columns = {}, frame.columns
    for name in frame.columns:
        kind = getattr(native[name].dtype, "pyarrow_dtype", None)
        if kind is not None and (pa.types.is_dictionary(kind) or pa.types.is_nested(kind)):
            held = native[name].array
            array = pa.chunked_array(held.__arrow_array__()).combine_chunks()
            native[name] = type(held)(pa.chunked_array([bare_array(array)]))
        elif name in coded:
            native[name] = native[name].cat.remove_unused_categories()
    return native
