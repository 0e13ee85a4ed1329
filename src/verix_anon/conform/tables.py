"""Submissions made from seeds, small enough to be read: contract, trackers and columns."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = [
    "CLEAR_TARGET",
    "Sent",
    "Spec",
    "Values",
    "canonical",
    "coded",
    "labels",
    "numeric",
    "ranked",
    "sent",
    "trackers",
    "uniform",
    "whole",
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A submission as the independent implementation takes it."""

    contract: bytes
    trackers: list[bytes]
    columns: Sequence[Values]
    """All sent columns in contract order, the target among them."""


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


def sent(columns: Sequence[Spec], target: Sequence[int], **terms: object) -> Sent:
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
    return Sent(contract=canonical(fields), trackers=trackers(len(target)), columns=values)


def canonical(fields: object) -> bytes:
    """JSON as RFC 8785 writes it, of text and integers under ASCII names."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def coded(weights: Sequence[int] | None, **terms: object) -> Sent:
    """Positions in a column of many, one of few, one where most share the last, a constant one."""
    n = 96
    many, few = whole(50, n, 60), whole(51, n, 5)
    most = [7 if u < 0.85 else int(40 * u) % 7 for u in uniform(52, n)]
    columns = [
        ranked(f"q{j}", values, None if weights is None else weights[j])
        for j, values in enumerate((many, few, most, [0] * n))
    ]
    return sent(columns, labels(53, n, many), **terms)
