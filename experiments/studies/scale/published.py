"""The paper's own figures on time, memory and bytes (§6.4 and §6.5), cell by cell."""

from typing import NamedTuple

__all__ = [
    "HASHING_SHARE",
    "RESOURCE_COLUMNS",
    "RESOURCE_ROWS",
    "VERIFY_SECONDS",
    "WIRE",
    "Resource",
]

VERIFY_SECONDS = {
    10_000: 0.503,
    50_000: 0.515,
    100_000: 0.528,
    250_000: 0.590,
    500_000: 0.644,
    1_000_000: 0.788,
}
"""Table tab:scalability: rows to seconds of client verification; the hashing is extrapolated."""


class Resource(NamedTuple):
    """One row of Table tab:resource."""

    build: float
    verify: float
    megabytes: float
    depth: int
    nodes: int


RESOURCE_ROWS = {
    2_000: Resource(1.23, 0.46, 662.8, 8, 153),
    4_000: Resource(2.32, 0.57, 662.8, 9, 265),
    8_000: Resource(4.80, 0.82, 662.9, 10, 491),
    16_000: Resource(10.61, 0.87, 664.5, 11, 947),
    32_000: Resource(26.17, 1.13, 676.0, 12, 1_935),
}
"""By rows, at 16 columns."""
RESOURCE_COLUMNS = {
    8: Resource(2.57, 0.52, 674.0, 10, 487),
    16: Resource(4.66, 0.77, 672.9, 10, 491),
    32: Resource(9.71, 1.04, 671.9, 10, 511),
    64: Resource(19.79, 1.49, 671.8, 10, 491),
    128: Resource(41.69, 2.34, 677.2, 10, 441),
}
"""By columns, at 8,000 rows."""
HASHING_SHARE = (0.05, 0.10)
"""What the paper guesses that hashing adds to the build (§6.4)."""
WIRE = {"leaf map": 68e6, "tree": 20e6, "root": 32.0, "data": 128e6}
"""Bytes at 1,000,000 rows and 16 columns, estimated (§6.4); 88 MB are the first three."""
