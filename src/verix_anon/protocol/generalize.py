"""From a leaf to what a model takes of it: midpoints (spec §5)."""

from verix_anon.arrays import Floats
from verix_anon.protocol.contract import Unit
from verix_anon.protocol.tree import Leaves

__all__ = ["NUMPY_UNITS", "midpoints"]

NUMPY_UNITS = {
    Unit.DAY: "D",
    Unit.SECOND: "s",
    Unit.MILLISECOND: "ms",
    Unit.MICROSECOND: "us",
}


def midpoints(leaves: Leaves) -> Floats:
    """The middle of each leaf's bounds, halved before adding so that nothing overflows."""
    return leaves.minimum / 2 + leaves.maximum / 2
