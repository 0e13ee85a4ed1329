"""Categories as cells: by their hierarchy, as a range of an order, or as a set (spec §12).

Every cell comes with the number of the table's categories that it leaves possible.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Flags, Ints
from verix_anon.client.release.cells.plain import alone, joined, quoted
from verix_anon.client.release.ranges import Range, Sets
from verix_anon.client.table.hierarchies import PREFIX, Hierarchy
from verix_anon.errors import TableError

__all__ = ["ANY", "MOST_LISTED", "exact_sets", "named"]

ANY = "*"
MOST_LISTED = 6
"""Labels that a set names; of more, the first ones and how many others."""
MOST_TEXT = 1 << 30
"""Bytes that one column of exact sets of categories may take."""


def named(found: Range) -> tuple[pa.Array, Ints]:
    """By hierarchy or order, where there is one, else as sets that name a few labels."""
    if found.form.hierarchy is not None:
        return _by_hierarchy(found, found.form.hierarchy)
    return _by_order(found) if found.form.is_ordered else _short_sets(found)


def exact_sets(found: Range) -> tuple[pa.Array, Ints]:
    """All labels that occur in each class, if the rows can bear it."""
    sets, labels = _of(found)
    n_bytes = np.append(0, np.cumsum(pc.binary_length(labels).to_numpy()[sets.position] + 2))
    total = int(found.records @ np.diff(n_bytes[sets.start]))
    if total > MOST_TEXT:
        raise TableError(
            f"column {found.column.name!r} would take {total / 1e9:.0f} GB as sets of categories;"
            " group its categories first"
        )
    return _listed(labels, sets.position, sets.start), np.diff(sets.start)


def _of(found: Range) -> tuple[Sets, pa.Array]:
    assert found.sets is not None
    labels = [quoted(label) for label in found.column.categories or ()]
    return found.sets, pa.array(labels, pa.large_string())


def _listed(labels: pa.Array, position: Ints, start: Ints) -> pa.Array:
    """Text `{a, b}` of each class."""
    lists = pa.LargeListArray.from_arrays(pa.array(start), labels.take(pa.array(position)))
    inside = pc.binary_join(lists, pa.scalar(", ", pa.large_string()))
    return joined("{", joined(inside, "}", ""), "")


def _short_sets(found: Range) -> tuple[pa.Array, Ints]:
    sets, labels = _of(found)
    count = np.diff(sets.start)
    occurring = np.unique(sets.position)
    n_labels = occurring.size
    texts = _listed(labels, *_first_ones(sets))
    more = count - MOST_LISTED
    rest = pa.array([f" and {n:,} more" if n > 0 else "" for n in more], pa.large_string())
    texts = pc.if_else(pa.array(more > 0), joined(texts, rest, ""), texts)
    # What is left out is shorter, and exact.
    lacking = (more > 0) & (n_labels - count <= MOST_LISTED) & (count < n_labels)
    if lacking.any():
        but = joined("not ", _listed(labels, *_complements(sets, occurring, lacking)), "")
        texts = pc.replace_with_mask(texts, pa.array(lacking), but)
    if n_labels > 1:
        texts = pc.if_else(pa.array(count == n_labels), pa.scalar(ANY, texts.type), texts)
    texts = _singles(texts, sets, found.column.categories or ())
    return texts, np.where((more > 0) & ~lacking, n_labels, count)


def _singles(texts: pa.Array, sets: Sets, labels: Sequence[str]) -> pa.Array:
    """A label by itself where a class has one."""
    is_one = np.diff(sets.start) == 1
    bare = pa.array([alone(label) for label in labels], pa.large_string())
    return pc.replace_with_mask(
        texts, pa.array(is_one), bare.take(pa.array(sets.position[sets.start[:-1][is_one]]))
    )


def _first_ones(sets: Sets) -> tuple[Ints, Ints]:
    """The first few positions of each set."""
    count = np.diff(sets.start)
    rank = np.arange(sets.position.size) - np.repeat(sets.start[:-1], count)
    kept = np.minimum(count, MOST_LISTED)
    return sets.position[rank < MOST_LISTED], np.append(0, np.cumsum(kept))


def _complements(sets: Sets, occurring: Ints, wanted: Flags) -> tuple[Ints, Ints]:
    """The positions that occur in the table and not in each of the classes wanted."""
    count = np.diff(sets.start)
    class_of = np.repeat(np.cumsum(wanted) - 1, count)
    is_wanted = np.repeat(wanted, count)
    is_absent = np.ones((int(wanted.sum()), occurring.size), np.bool_)
    is_absent[class_of[is_wanted], np.searchsorted(occurring, sets.position[is_wanted])] = False
    _, at = np.nonzero(is_absent)
    return occurring[at], np.append(0, np.cumsum(is_absent.sum(axis=1)))


def _by_order(found: Range) -> tuple[pa.Array, Ints]:
    """Text `lo..hi` of labels, or the label alone."""
    sets, labels = _of(found)
    low, high = (labels.take(pa.array(ends.astype(np.int64))) for ends in (found.low, found.high))
    texts = _singles(joined(low, high, ".."), sets, found.column.categories or ())
    occurring = np.unique(sets.position)
    between = np.searchsorted(occurring, found.high) - np.searchsorted(occurring, found.low)
    return texts, between + 1


def _by_hierarchy(found: Range, hierarchy: Hierarchy) -> tuple[pa.Array, Ints]:
    """The lowest name that covers each class."""
    if hierarchy.kind == PREFIX:
        return _prefixes(found)
    sets, _ = _of(found)
    texts = pa.array([ANY] * found.records.size, pa.large_string())
    covered = np.full(found.records.size, np.unique(sets.position).size)
    above = [hierarchy.levels[label] for label in found.column.categories or ()]
    filled = np.diff(sets.start) > 0
    first = sets.start[:-1][filled]
    for level in reversed(range(hierarchy.height)):
        names = pa.array([each[level] for each in above], pa.large_string()).dictionary_encode()
        codes = names.indices.to_numpy().astype(np.int64)
        low = np.minimum.reduceat(codes[sets.position], first)
        is_shared = np.zeros(filled.size, np.bool_)
        is_shared[filled] = low == np.maximum.reduceat(codes[sets.position], first)
        shared = low[is_shared[filled]]
        bare = pa.array([_name(n) for n in names.dictionary.to_pylist()], pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(is_shared), bare.take(pa.array(shared)))
        occurring = np.bincount(codes[np.unique(sets.position)], minlength=len(names.dictionary))
        covered[is_shared] = occurring[shared]
    texts = _singles(texts, sets, found.column.categories or ())
    return texts, np.where(np.diff(sets.start) == 1, 1, covered)


def _name(text: str) -> str:
    """A name of a hierarchy; `*` is for all."""
    return text if text == ANY else alone(text)


def _prefixes(found: Range) -> tuple[pa.Array, Ints]:
    """What the codes of a class begin with; a star for each character that is left out."""
    sets, _ = _of(found)
    codes = list(found.column.categories or ())
    occurring = [codes[at] for at in np.unique(sets.position)]
    length = len(occurring[0]) if len({*map(len, occurring)}) == 1 else None
    ends = np.column_stack([found.low, found.high]).astype(np.int64)
    pairs, which = np.unique(ends, axis=0, return_inverse=True)
    texts, covered = [], []
    for low, high in pairs.tolist():
        prefix = _shared(codes[low], codes[high])
        is_one = low == high
        stars = ANY * (1 if length is None or not prefix else length - len(prefix))
        texts.append(alone(codes[low]) if is_one else _name(prefix + stars))
        covered.append(1 if is_one else _n_beginning(occurring, prefix))
    which = which.ravel()
    return pa.array(texts, pa.large_string()).take(pa.array(which)), np.array(covered)[which]


def _shared(first: str, second: str) -> str:
    """What both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))]


def _n_beginning(codes: Sequence[str], prefix: str) -> int:
    """How many of these codes, which are in order, have the prefix."""
    end = bisect_left(codes, prefix + chr(0x10FFFF)) if prefix else len(codes)
    return end - bisect_left(codes, prefix)
