"""Names for the array types."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
"""Rows, positions and counts."""
Ids = npt.NDArray[np.int32]
"""Leaves, columns and nodes."""
Numbers = npt.NDArray[np.uint32]
"""Records within a table of fewer than 2^32."""
Shorts = npt.NDArray[np.uint16]
"""Records within a block of one."""
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
"""Labels, digests, trackers, bytes as such."""
Numeric = Floats | Ids | Bytes
"""A column, in the type that holds its values."""
Flags = npt.NDArray[np.bool_]
