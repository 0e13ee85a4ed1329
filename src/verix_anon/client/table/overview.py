"""What each column of a table holds, for its owner to look at: examples, counts and a small chart.

It holds values of the table, so it is written for its owner alone, and nothing of it is ever sent.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.encode import kind_of
from verix_anon.client.table.guess import look, prose_in, texts_of
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.errors import TableError
from verix_anon.fields import Fields, to_json
from verix_anon.files.tables import cell_text
from verix_anon.protocol.contract import Kind

FORMAT = "verix/overview/1"
MOST_ROWS, MOST_CELLS = 20_000, 320_000
"""A sample has no more rows and cells, so that a preview of it takes about a second."""
EXAMPLES, BARS, LONGEST = 5, 10, 60
MANY_ONCE = 0.05
"""A larger share of values that occur once singles many people out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOverview:
    """One column, over all its rows."""

    name: str
    kind: str = ""
    """Empty: it can be no quasi-identifier."""
    is_text: bool = False
    n_distinct: int = 0
    missing: float = 0.0
    """Share of the rows."""
    once: float = 0.0
    """Share of the rows whose value no other row has."""
    prose: str = ""
    """Why it is free text; empty if it is not."""
    examples: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()
    """Where ranges of numbers or dates begin, or the most frequent values."""
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All columns, by name."""

    n_rows: int
    columns: dict[str, ColumnOverview]

    def to_json(self) -> str:
        """All of it."""
        columns = [asdict(column) for column in self.columns.values()]
        return to_json({"format": FORMAT, "n_rows": self.n_rows, "columns": columns})

    @classmethod
    def from_json(cls, text: str) -> "Overview":
        """Read it back; raises TableError."""
        fields = Fields.parse(text, "the overview", TableError)
        fields.expect("format", FORMAT)
        found = [each.record(ColumnOverview) for each in fields.each("columns")]
        if any(len(column.bars) != len(column.shares) for column in found):
            raise TableError("the overview: each bar must have a share")
        return cls(n_rows=fields.whole("n_rows"), columns={c.name: c for c in found})


def overview(table: object) -> Overview:
    """Look at every column of a table."""
    columns = columns_of(table)
    found = {name: _overview(name, columns[name]) for name in columns}
    return Overview(n_rows=columns.n_rows, columns=found)


def sample_of(table: object) -> bytes:
    """Return rows of a table at random, in their order; all of them if it is small."""
    columns = columns_of(table)
    n = min(columns.n_rows, MOST_ROWS, MOST_CELLS // max(len(columns), 1))
    some = pa.array(np.sort(np.random.default_rng().permutation(columns.n_rows)[:n]))
    held = pa.table({name: columns[name].take(some) for name in columns})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, held.schema) as writer:
        writer.write_table(held)
    return bytes(sink.getvalue())


def read_sample(path: Path) -> pa.Table:
    """Read the file of a sample back; raises TableError."""
    try:
        return pa.ipc.open_file(path.read_bytes()).read_all()
    except (pa.ArrowException, OSError):
        raise TableError(
            "the sample of the table is missing or damaged; read its values again on the page of"
            " its columns"
        ) from None


def _overview(name: str, array: pa.Array) -> ColumnOverview:
    values, kind = array.drop_null(), kind_of(array.type)
    missing = array.null_count / max(len(array), 1)
    if kind is None or not len(values):
        return ColumnOverview(name=name, kind=kind or "", missing=missing)
    plain = values.dictionary_decode() if pa.types.is_dictionary(array.type) else values
    counts = plain.value_counts()
    counts = counts.take(pc.sort_indices(counts.field("counts"), [("", "descending")]))
    times = counts.field("counts").to_numpy()
    common = [cell_text(v, LONGEST) for v in counts.field("values")[: max(EXAMPLES, BARS)]]
    seen = look(array)
    bars, shares = common[:BARS], times[:BARS] / len(values)
    if kind is not Kind.CATEGORICAL and len(times) <= BARS:
        order = pc.sort_indices(counts.field("values")).to_numpy()
        bars, shares = [common[at] for at in order], shares[order]
    elif kind is not Kind.CATEGORICAL:
        bars, shares = _histogram(plain, kind)
    return ColumnOverview(
        name=name,
        kind=kind.value,
        is_text=seen.is_text,
        n_distinct=len(times),
        missing=missing,
        once=int((times == 1).sum()) / len(array),
        prose=prose_in(name, texts_of(array)) if seen.is_text else "",
        examples=tuple(common[:EXAMPLES]),
        bars=tuple(bars),
        shares=tuple(round(float(share), 4) for share in shares),
    )


def _histogram(values: pa.Array, kind: Kind) -> tuple[list[str], Floats]:
    """Ranges of equal width."""
    dated = kind is Kind.DATETIME
    moments = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64()) if dated else values
    numbers = moments.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    counts, edges = np.histogram(numbers[np.isfinite(numbers)], BARS)
    days = edges[:-1].astype("M8[s]").astype("M8[D]").astype(str)
    form = ".0f" if edges[-1] - edges[0] >= 2 * BARS else ".4g"
    names = [f"{day}.." for day in days] if dated else [f"{edge:{form}}.." for edge in edges[:-1]]
    return names, counts / max(counts.sum(), 1)


def coarser(value: str, hierarchy: str, bins: str = "") -> list[str]:
    """Return a value and what a hierarchy or bins may make of it, for people to see what they do.

    The release measures its own; a value to which they do not apply gives an empty list.
    """
    is_day = len(value) >= len("2024-05-17") and value[:4].isdecimal() and value[5:7].isdecimal()
    if bins.endswith("y") and is_day:
        years = int(bins[:-1])
        first = int(value[:4]) // years * years
        return [value[:10], f"{first}" if years == 1 else f"{first}..{first + years - 1}"]
    if hierarchy == PREFIX:
        n_kept = int(bins) if bins.isdecimal() else max(len(value) - 2, 1)
        lengths = [len(value), n_kept] if bins else range(len(value), n_kept - 1, -1)
        return [value[:n] + "*" * (len(value) - n) for n in lengths]
    if hierarchy == DATE and is_day:
        return [value[:10], value[:7], f"{value[:4]}-Q{(int(value[5:7]) + 2) // 3}", value[:4]]
    if bins.isdecimal() and value.replace(".", "", 1).isdecimal():
        low = int(float(value)) // int(bins) * int(bins)
        return [value, f"{low}..{low + int(bins) - ('.' not in value)}"]
    return []
