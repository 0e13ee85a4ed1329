"""The submissions of the kit, made from seeds, each small enough to be read.

First what they are made of, then the tables, each made to show one thing.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Values = Sequence[float] | Sequence[int]
Spec = tuple[dict[str, object], Values]
"""A column of the contract without its role, and its values."""

CLEAR_TARGET: dict[str, object] = {
    "name": "y",
    "kind": "categorical",
    "role": "target",
    "categories": ["no", "yes"],
}
CODED_TARGET: dict[str, object] = {"name": "y", "kind": "rank", "role": "target", "size": 2}


def canonical(fields: object) -> bytes:
    """JSON as RFC 8785 writes it, of text and integers under ASCII names."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def pretty(fields: dict[str, Any]) -> bytes:
    """JSON in another form, which no reader minds in a header."""
    return json.dumps(dict(reversed(fields.items())), indent=2).encode()


def one_file(table: pa.Table, path: Path) -> None:
    """Write a table as one file of Parquet."""
    pq.write_table(table, path, compression="zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class KitSubmission:
    """A submission as the independent implementation takes it, and what its files have otherwise.

    Whatever is not changed fits the rest: digests are those of the contract and the columns.
    """

    contract: bytes
    trackers: list[bytes]
    columns: Sequence[Values]
    """All sent columns in contract order, the target among them."""
    change: Callable[[pa.Table], pa.Table] = lambda table: table
    """What becomes of the table of records before it is written"""
    write: Callable[[pa.Table, Path], None] = one_file
    """How the table of records is written"""
    header: Mapping[str, object] = field(default_factory=dict)
    """What submission.json says otherwise"""
    header_bytes: Callable[[dict[str, Any]], bytes] = canonical
    """How submission.json is written"""
    left_out: str = ""
    """A file that is not there in the end"""

    @property
    def described(self) -> list[dict[str, Any]]:
        """The columns as the contract describes them, which need not be valid."""
        found: list[dict[str, Any]] = json.loads(self.contract)["columns"]
        return found


def uniform(seed: int, n: int) -> list[float]:
    """Numbers in [0, 1) from a stream that no version of numpy will change."""
    raw = np.random.PCG64(seed).random_raw(n)
    return [float(word) for word in (raw >> np.uint64(11)) * 2.0**-53]


def whole(seed: int, n: int, below: int) -> list[int]:
    """Whole numbers from 0 on, below a given one."""
    return [int(u * below) for u in uniform(seed, n)]


def trackers(n: int) -> list[bytes]:
    """Trackers as anybody can make them: no owner, no secret."""
    return [hashlib.sha256(f"tracker {row}".encode()).digest() for row in range(n)]


def labels(seed: int, n: int, driver: Values) -> list[int]:
    """A target with signal: above the driver's mean it is mostly 1."""
    mean = sum(driver) / n
    noise = uniform(seed, n)
    return [int((d > mean) == (u < 0.8)) for d, u in zip(driver, noise, strict=True)]


def numeric(name: str, values: Values) -> Spec:
    """A column of numbers in clear."""
    return {"name": name, "kind": "numeric"}, values


def ranked(name: str, values: Values, weight: int | None = None) -> Spec:
    """A coded column: the positions of these values among those that occur."""
    occur = sorted(set(values))
    place = {value: position for position, value in enumerate(occur)}
    weighed = {} if weight is None else {"weight": weight}
    column = {"name": name, "kind": "rank", "size": len(occur), **weighed}
    return column, [place[value] for value in values]


def sent(columns: Sequence[Spec], target: Sequence[int], **terms: object) -> KitSubmission:
    """A submission of these columns under these terms."""
    described: list[dict[str, object]] = [{**column, "role": "quasi"} for column, _ in columns]
    values = [values for _, values in columns]
    if terms.get("rule") != "importance-spread":
        # The target stands second, to show that its place in the contract counts.
        is_coded = described[0]["kind"] == "rank"
        described.insert(1, CODED_TARGET if is_coded else CLEAR_TARGET)
        values.insert(1, target)
    k = terms.pop("k", 2)
    assert isinstance(k, int)
    fields = {
        "format": "verix/contract/2",
        "submission_id": "000102030405060708090a0b0c0d0e0f",
        "k": k,
        "min_leaf": 2 * k,
        "max_depth": 50,
        "rule": "variance-reduction",
        "commitment": "binding",
        "columns": described,
        **terms,
    }
    return KitSubmission(contract=canonical(fields), trackers=trackers(len(target)), columns=values)


def clear(**terms: object) -> KitSubmission:
    """A small submission in clear that would be answered: most of those to be refused begin so."""
    n = 24
    columns = [numeric("a", whole(60, n, 12)), numeric("b", whole(61, n, 9))]
    return sent(columns, labels(62, n, columns[0][1]), **terms)


def coded(weights: Sequence[int] | None = None, **terms: object) -> KitSubmission:
    """Positions in a column of many, one of few, one where most share the last, a constant one."""
    n = 96
    many, few = whole(50, n, 60), whole(51, n, 5)
    most = [7 if u < 0.85 else int(40 * u) % 7 for u in uniform(52, n)]
    return sent(_positions((many, few, most, [0] * n), weights), labels(53, n, many), **terms)


def _positions(shapes: Sequence[Values], weights: Sequence[int] | None) -> list[Spec]:
    return [
        ranked(f"q{j}", values, None if weights is None else weights[j])
        for j, values in enumerate(shapes)
    ]


def continuous(**terms: object) -> KitSubmission:
    """Three columns of numbers, and a target that follows the first."""
    columns = [numeric(f"x{j}", uniform(10 + j, 64)) for j in range(3)]
    return sent(columns, labels(20, 64, columns[0][1]), **terms)


def mixed(**terms: object) -> KitSubmission:
    """Columns of every kind in clear."""
    n = 90
    age = whole(1, n, 70)
    cities = [f"c{i}" for i in range(300)]
    columns: list[Spec] = [
        numeric("age", [float(a) for a in age]),
        ({"name": "città 🏙", "kind": "categorical", "categories": cities}, whole(2, n, 300)),
        ({"name": "born", "kind": "datetime", "unit": "day"}, [float(-a) for a in whole(3, n, 40)]),
        numeric("constant", [4.25] * n),
        numeric("income", [u * 1e5 for u in uniform(4, n)]),
    ]
    return sent(columns, labels(5, n, age), k=3, **terms)


def extremes(commitment: str) -> KitSubmission:
    """Numbers as far apart, and as near to each other, as binary64 has them."""
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-7]
    n = 48
    picked = [values[i] for i in whole(30, n, len(values))]
    near = [1.0 + i * 2.0**-52 for i in whole(31, n, 12)]
    columns = [numeric("far", picked), numeric("near", near)]
    return sent(columns, whole(33, n, 2), commitment=commitment)


def given(columns: Mapping[str, Values], target: Sequence[int], **terms: object) -> KitSubmission:
    """Columns of numbers that a case spells out."""
    return sent([numeric(name, values) for name, values in columns.items()], target, **terms)


def single_leaf() -> KitSubmission:
    """As many records as a leaf has at the least."""
    return sent([numeric("x", uniform(40, 10))], whole(41, 10, 2), k=5)


def pure() -> KitSubmission:
    """Records of one class."""
    return sent([numeric("x", uniform(42, 40))], [1] * 40)


def ties() -> KitSubmission:
    """Two columns with equal scores, and one that ties leave no valid split."""
    columns = [
        numeric("most", [0.0] * 29 + [1.0] * 11),
        numeric("same", [0.0] * 20 + [1.0] * 20),
        numeric("again", [0.0] * 20 + [1.0] * 20),
    ]
    return sent(columns, [0, 1] * 20, k=6)


def spread(weights: Sequence[int], **terms: object) -> KitSubmission:
    """Coded columns under weights, without a target."""
    return coded(weights, rule="importance-spread", **terms)


def binary32() -> KitSubmission:
    """Scores of 2^24 and of 2^24 + 1."""
    columns = [ranked("first", [0, 0, 1, 1] * 3, 2**24), ranked("second", [0, 1] * 6, 2**24 + 1)]
    return sent(columns, [0] * 12, rule="importance-spread")


def half_a_day() -> KitSubmission:
    """Dates that are no whole number of days."""
    day: dict[str, object] = {"name": "day", "kind": "datetime", "unit": "day"}
    return sent([(day, [v / 2 for v in whole(160, 24, 40)])], whole(161, 24, 2))


def equal_trackers() -> KitSubmission:
    """Two records of one tracker."""
    made = continuous()
    return replace(made, trackers=[made.trackers[1], *made.trackers[1:]])


def names() -> KitSubmission:
    """Names that only look reserved, or like something else."""
    names = ("target", "Row", "a|b:c,d", "\ufb01 \u212b", "{delivery}")
    columns = [numeric(name, uniform(70 + j, 50)) for j, name in enumerate(names)]
    return sent(columns, labels(76, 50, columns[2][1]))


def sorted_names() -> KitSubmission:
    """Names that UTF-16 and dictionaries sort otherwise than code points; `|` in the target's."""
    names = ("\U0001f3d9", "alpha", "\uff21", "Zeta")
    columns = [numeric(name, uniform(120 + j, 40)) for j, name in enumerate(names)]
    made = sent(columns, labels(125, 40, columns[0][1]), commitment="paper")
    fields = json.loads(made.contract)
    fields["columns"][1]["name"] = "a|b:c,d"
    return replace(made, contract=canonical(fields))


def halves() -> KitSubmission:
    """Values whose seventh decimal is a 5 and the last one."""
    columns = [
        numeric(name, [v / 128 for v in whole(seed, 40, 99)])
        for name, seed in (("a", 130), ("b", 131))
    ]
    return sent(columns, labels(132, 40, columns[0][1]), commitment="paper")


def units() -> KitSubmission:
    """Dates in each unit below a day."""
    columns: list[Spec] = [
        ({"name": unit, "kind": "datetime", "unit": unit}, [float(v) for v in whole(j, 40, 10**9)])
        for j, unit in enumerate(("s", "ms", "us"), 140)
    ]
    return sent(columns, labels(143, 40, columns[0][1]))


def largest() -> KitSubmission:
    """Weights with which a score is 2^52, and the largest column of positions."""
    n, most = 60, 2**31 - 1
    few, far = [v % 5 for v in range(n)], [0, most - 1, *whole(151, n - 2, most)]
    columns: list[Spec] = [
        ranked("few", few, 2**50),
        ({"name": "far", "kind": "rank", "size": most, "weight": 2**21}, far),
    ]
    return sent(columns, [0] * n, rule="importance-spread")


def constant() -> KitSubmission:
    """Columns that cannot be split."""
    return sent([numeric("a", [3.5] * 30), numeric("b", [0.0] * 30)], [0, 1] * 15)


def duplicates(weight: int | None = None, **terms: object) -> KitSubmission:
    """Nine persons, each of them ten times."""
    columns = [
        ranked(f"q{j}", [v for v in whole(80 + j, 9, 6) for _ in range(10)], weight)
        for j in range(3)
    ]
    return sent(columns, [v for v in whole(84, 9, 2) for _ in range(10)], k=3, **terms)


def minority() -> KitSubmission:
    """Few records of the positive class."""
    n = 240
    columns = [numeric(f"x{j}", whole(90 + j, n, 40)) for j in range(3)]
    return sent(columns, [int(u < 0.03) for u in uniform(94, n)], min_leaf=3)


def many(**terms: object) -> KitSubmission:
    """Enough records for a tree of many levels, in columns of all shapes."""
    n = 1500
    shapes = [
        whole(100, n, 900),
        [int(1000 * u * u * u) for u in uniform(101, n)],
        [int(u < 0.93) for u in uniform(102, n)],
        whole(103, n, 7),
        [v // 40 for v in whole(100, n, 900)],
    ]
    weights = [1, 2, 700, 150, 40] if terms.get("rule") == "importance-spread" else None
    return sent(_positions(shapes, weights), labels(106, n, shapes[1]), **terms)


def million(**terms: object) -> KitSubmission:
    """A million records, in columns of all shapes."""
    n = 1_000_000
    sizes = (50_000, 3_000, 300, 60, 12, 2)
    shapes = [whole(200 + j, n, size) for j, size in enumerate(sizes)]
    shapes.append([int(10_000 * u * u * u) for u in uniform(210, n)])
    shapes.append([int(u < 0.93) for u in uniform(211, n)])
    weights = (
        [1, 20, 200, 900, 5_000, 40_000, 6, 30_000]
        if terms.get("rule") == "importance-spread"
        else None
    )
    return sent(_positions(shapes, weights), labels(220, n, shapes[6]), k=25, **terms)


def one_chunk() -> KitSubmission:
    """As many records as a chunk holds, in one leaf."""
    n = 65_536
    return sent([ranked("q", whole(112, n, 5000))], whole(113, n, 2), k=2**15)


def two_chunks() -> KitSubmission:
    """One record more, and splits."""
    n = 65_537
    return sent([ranked("q", whole(110, n, 5000))], whole(111, n, 2), k=5000, max_depth=2)
