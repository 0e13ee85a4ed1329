"""Whether the quotes of a text table stand around its fields, over one piece after the other."""

import numpy as np

from verix_anon.arrays import Ints

__all__ = ["Quotes"]

PIECE = 1 << 20
"""Bytes that the processor's cache holds."""


class Quotes:
    """Quotes of which every other one opens a field, as what stands beside them may show.

    One of two within a field closes it, and the other opens it again.
    """

    def __init__(self, quote: str) -> None:
        self.quote = quote
        self.is_inside = False
        self._byte = quote.encode()[0]
        self._before = ord("\n")
        self._outside = np.zeros(256, bool)

    @classmethod
    def of(cls, data: bytes | bytearray, quote: str) -> "Quotes":
        """Those of a whole text."""
        found, text = cls(quote), memoryview(data)
        for start in range(0, len(data), PIECE):
            found.feed(text[start : start + PIECE])
        return found

    def feed(self, text: bytes | memoryview) -> Ints:
        """Take the next bytes; where quotes stand in them."""
        array = np.frombuffer(text, np.uint8)
        at = np.flatnonzero(array == self._byte)
        if not array.size:
            return at
        inside = int(self.is_inside)
        opening, closing = at[inside::2], at[1 - inside :: 2]
        if self._before == self._byte and not inside:
            self._outside[array[0]] = True
        if opening.size and opening[0] == 0:
            self._outside[self._before] = True
            opening = opening[1:]
        if closing.size and closing[-1] == array.size - 1:
            closing = closing[:-1]
        self._outside[array[opening - 1]] = True
        self._outside[array[closing + 1]] = True
        self._before = int(array[-1])
        self.is_inside = bool((inside + at.size) % 2)
        return at

    def fit(self, marks: bytes) -> bool:
        """Whether each so far opens or closes a field, if those are what may stand beside one."""
        others = self._outside.copy()
        others[[*marks, *b"\r\n", self._byte]] = False
        return not others.any()
