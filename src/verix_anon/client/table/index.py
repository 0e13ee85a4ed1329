"""An index of pandas is no column: it has no role, so it is not published (spec §2, §12)."""

import narwhals as nw

from verix_anon.errors import TableError

__all__ = ["index_warnings"]


def index_warnings(table: object) -> tuple[str, ...]:
    """What to say of an index that does not merely number the rows; one with a name is refused."""
    try:
        frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
    except TypeError:
        return ()  # encode() says what is wrong with it
    index = nw.maybe_get_index(frame)
    if index is None or list(index) == list(range(len(frame))):
        return ()
    if any(name is not None for name in index.names):
        raise TableError(
            f"the index {', '.join(map(repr, index.names))} of the table has no role: make it a"
            " column, with reset_index(), and declare it; or drop it, with reset_index(drop=True)"
        )
    return ("the index of the table is no column: it is neither sent nor published",)
