"""A keyed sketch of the people in a table: few bytes that tell how many people two tables share.

It holds the smallest keyed codes of the people (a bottom-k sketch). Of the smallest codes of two
tables together, the share that is in both estimates the share of all people who are in both. A code
is 48 bits of an HMAC, so without the key a sketch tells nothing about anyone.
"""

import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ints
from verix_anon.client.table.digest import plain_column
from verix_anon.errors import TableError
from verix_anon.fields import COUNTS, Fields

SIZE = 1_024
"""How many codes are kept; the error of a share is about 1 / sqrt(SIZE)."""
BYTES = 6


@dataclass(frozen=True, slots=True, eq=False)
class PersonSketch:
    """The smallest codes of a table's people, and how many people there are."""

    n_people: int
    codes: Ints
    """In ascending order."""

    @classmethod
    def of(cls, persons: pa.Array, key: bytes) -> "PersonSketch":
        """Make the sketch of a column that tells people apart; missing values do not count."""
        names = plain_column(persons).drop_null().unique().to_pylist()
        found = (hmac.digest(key, str(name).encode(), "sha256")[:BYTES] for name in names)
        codes = np.sort(np.array([int.from_bytes(code, "big") for code in found], np.int64))
        return cls(len(names), codes[:SIZE])

    def shared(self, other: "PersonSketch") -> int:
        """Estimate how many people are in both tables; exact if both are small."""
        both = np.union1d(self.codes, other.codes)[:SIZE]
        in_both = np.isin(both, self.codes) & np.isin(both, other.codes)
        similar = float(in_both.mean()) if both.size else 0.0
        return round(similar * (self.n_people + other.n_people) / (1 + similar))

    def to_json(self) -> dict[str, object]:
        """Return the sketch as the ledger writes it."""
        data = b"".join(int(code).to_bytes(BYTES, "big") for code in self.codes)
        return {"n": self.n_people, "codes": b64encode(data).decode()}

    @classmethod
    def from_json(cls, fields: Fields) -> "PersonSketch":
        """Read it back; raises the error of the fields."""
        try:
            data = b64decode(fields.text("codes"), validate=True)
        except ValueError:
            raise TableError("a sketch of people is damaged") from None
        parts = [data[i : i + BYTES] for i in range(0, len(data), BYTES)]
        codes = np.array([int.from_bytes(part, "big") for part in parts], np.int64)
        return cls(fields.whole("n", COUNTS), np.sort(codes)[:SIZE])
