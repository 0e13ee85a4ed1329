"""Ranges of a file (RFC 9110 §14): one range is served, and anything odd gives the whole file."""

import re
from typing import NamedTuple

from verix_anon.service.api.problems import Problem

__all__ = ["Span", "wanted"]

ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z", re.ASCII)


class Span(NamedTuple):
    """Bytes `start` to `end`, the end not included."""

    start: int
    end: int


def wanted(size: int, etag: str, range_header: str | None, if_range: str | None) -> Span | None:
    """Which bytes are asked for; None for the whole file.

    With `If-Range` the range counts only if the file is still the one it was begun with.
    """
    found = ONE_RANGE.match(range_header or "")
    if found is None or (if_range is not None and if_range != etag):
        return None
    first, last = found[1], found[2]
    if not first and not last:
        return None
    if not first:
        span = Span(max(0, size - int(last)), size)
    else:
        span = Span(int(first), min(size, int(last) + 1) if last else size)
        if last and int(last) < int(first):
            return None
    if span.start >= span.end:
        raise Problem(
            "range-not-satisfiable",
            f"The file has {size:,} bytes.",
            {"Content-Range": f"bytes */{size}"},
        )
    return span
