"""A delivery that never was a file: held to the types that a file would have, and digested."""

from collections.abc import Mapping
from hashlib import sha256

import numpy as np

from verix_anon.errors import MalformedDeliveryError
from verix_anon.protocol.messages import Delivery

__all__ = ["check_types", "digests"]

ARRAYS: Mapping[str, Mapping[str, tuple[type[np.generic], int]]] = {
    "records": {
        "row": (np.int64, 1),
        "tracker": (np.uint8, 2),
        "leaf": (np.int32, 1),
        "target": (np.uint8, 1),
    },
    "leaves": {"count": (np.int64, 1), "minimum": (np.float64, 2), "maximum": (np.float64, 2)},
    "tree": {
        "column": (np.int32, 1),
        "threshold": (np.float64, 1),
        "left": (np.int32, 1),
        "right": (np.int32, 1),
        "leaf": (np.int32, 1),
    },
}
"""The type and the dimensions of each array."""
DIGESTS = ("contract", "submission", "root")
COUNTS = ("rows", "leaves", "nodes")


def check_types(delivery: Delivery) -> None:
    """Raise MalformedDeliveryError unless every part has its type: annotations bind nobody."""
    for part, arrays in ARRAYS.items():
        for name, (dtype, n_dimensions) in arrays.items():
            array = getattr(getattr(delivery, part), name, None)
            if not (
                isinstance(array, np.ndarray) and (array.dtype, array.ndim) == (dtype, n_dimensions)
            ):
                raise MalformedDeliveryError(
                    f"{name} of the {part} is not an array of {dtype.__name__}"
                    f" with {n_dimensions} dimensions"
                )
    header = delivery.header
    for name in DIGESTS:
        digest = getattr(header, name, None)
        if not (isinstance(digest, bytes) and len(digest) == 32):
            raise MalformedDeliveryError(f"{name} in the header is not 32 bytes")
    for name in COUNTS:
        if type(getattr(header, name, None)) is not int:
            raise MalformedDeliveryError(f"{name} in the header is not a whole number")


def digests(delivery: Delivery) -> Mapping[str, str]:
    """SHA-256 of each part, where a verdict names those of files."""
    found = {}
    for part, arrays in ARRAYS.items():
        digest = sha256()
        for name in arrays:
            digest.update(np.ascontiguousarray(getattr(getattr(delivery, part), name)).data)
        found[f"memory:{'nodes' if part == 'tree' else part}"] = digest.hexdigest()
    return found
