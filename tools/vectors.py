"""Make the golden vectors: submissions, and the tree, digests and root each must give.

    PYTHONPATH=tests python -m tools.vectors

What is expected comes from tests/independent.py and tests/independent_proofs.py, written from the
text alone, so the engine has no part in its own exam. Floats are written in the shortest decimal
form that reads back to the same binary64.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import independent
import independent_proofs
from tools import signed_vectors

FOLDER = Path(__file__).parent.parent / "tests" / "vectors"

Vector = dict[str, object]
Values = list[float] | list[int]
Spec = tuple[dict[str, object], Values]
"""A column of the contract without its role, and its values."""


def uniform(seed: int, n: int) -> list[float]:
    """Numbers in [0, 1) from a stream that no version of numpy will change."""
    raw = np.random.PCG64(seed).random_raw(n)
    return [float(word) for word in (raw >> np.uint64(11)) * 2.0**-53]


def whole(seed: int, n: int, below: int) -> list[int]:
    return [int(u * below) for u in uniform(seed, n)]


def numeric(name: str, values: Values) -> Spec:
    return {"name": name, "kind": "numeric"}, values


def labels(seed: int, n: int, driver: Values) -> list[int]:
    """A target with signal: above the driver's mean it is mostly 1."""
    mean = sum(driver) / n
    noise = uniform(seed, n)
    return [int((d > mean) == (u < 0.8)) for d, u in zip(driver, noise, strict=True)]


CLEAR: dict[str, object] = {
    "name": "y",
    "kind": "categorical",
    "role": "target",
    "categories": ["no", "yes"],
}
CODED: dict[str, object] = {"name": "y", "kind": "rank", "role": "target", "size": 2}


def contract(columns: list[Spec], terms: dict[str, object]) -> tuple[bytes, bool]:
    """A contract of these columns, and whether its target is sent."""
    sent: list[dict[str, object]] = [{**column, "role": "quasi"} for column, _ in columns]
    is_coded = sent[0]["kind"] == "rank"
    has_target = terms.get("rule") != "importance-spread"
    if has_target:
        # The target stands second, to show that its place in the contract counts.
        sent.insert(1, CODED if is_coded else CLEAR)
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
        "columns": sent,
        **terms,
    }
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(), has_target


def vector(columns: list[Spec], target: list[int], **terms: object) -> Vector:
    data, has_target = contract(columns, terms)
    trackers = [hashlib.sha256(f"tracker {row}".encode()).digest() for row in range(len(target))]
    sent = [values for _, values in columns]
    if has_target:
        sent.insert(1, target)
    result = independent.anonymize(data, trackers, sent)
    is_binding = json.loads(data)["commitment"] == "binding"
    proved = {"proof": _proof(data, trackers, sent)} if is_binding else {}
    return {
        "contract": data.decode(),
        "trackers": [tracker.hex() for tracker in trackers],
        "columns": sent,
        "expected": {
            "contract_digest": result.contract_digest,
            "submission_digest": result.submission_digest,
            "root": result.root,
            "nodes": result.nodes,
            "leaves": result.leaves,
            "leaf_of_row": result.leaf_of_row,
            **proved,
        },
    }


def _proof(data: bytes, trackers: list[bytes], sent: list[Values]) -> str:
    """The proof of the middle row, in the very characters that it must have."""
    return independent_proofs.prove(data, trackers, sent, len(trackers) // 2)


def coded(weights: list[int] | None, **terms: object) -> Vector:
    """Positions in a column of many, one of few, one where most share the last, a constant one."""
    n = 96
    many, few = whole(50, n, 60), whole(51, n, 5)
    most = [7 if u < 0.85 else int(40 * u) % 7 for u in uniform(52, n)]
    found: list[Spec] = []
    for j, positions in enumerate((many, few, most, [0] * n)):
        occur = sorted(set(positions))
        dense = [occur.index(position) for position in positions]
        weight = {} if weights is None else {"weight": weights[j]}
        found.append(({"name": f"q{j}", "kind": "rank", "size": len(occur), **weight}, dense))
    return vector(found, labels(53, n, many), **terms)


def spread(weights: list[int], **terms: object) -> Vector:
    return coded(weights, rule="importance-spread", **terms)


def mixed() -> tuple[list[Spec], list[int]]:
    n = 90
    age = whole(1, n, 70)
    city = whole(2, n, 300)
    columns: list[Spec] = [
        numeric("age", [float(a) for a in age]),
        (
            {"name": "città 🏙", "kind": "categorical", "categories": [f"c{i}" for i in range(300)]},
            city,
        ),
        ({"name": "born", "kind": "datetime", "unit": "day"}, [float(-a) for a in whole(3, n, 40)]),
        numeric("constant", [4.25] * n),
        numeric("income", [u * 1e5 for u in uniform(4, n)]),
    ]
    return columns, labels(5, n, age)


def continuous(**terms: object) -> Vector:
    columns = [numeric(f"x{j}", uniform(10 + j, 64)) for j in range(3)]
    return vector(columns, labels(20, 64, columns[0][1]), **terms)


def extremes(commitment: str) -> Vector:
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-7]
    n = 48
    picked = [values[i] for i in whole(30, n, len(values))]
    near = [1.0 + i * 2.0**-52 for i in whole(31, n, 12)]
    target = whole(33, n, 2)
    return vector([numeric("far", picked), numeric("near", near)], target, commitment=commitment)


VECTORS: dict[str, Callable[[], Vector]] = {
    "continuous": continuous,
    "continuous-paper": lambda: continuous(commitment="paper"),
    "mixed": lambda: vector(*mixed(), k=3),
    "mixed-paper": lambda: vector(*mixed(), k=3, commitment="paper"),
    "extremes": lambda: extremes("binding"),
    "extremes-paper": lambda: extremes("paper"),
    "depth-one": lambda: continuous(max_depth=1),
    "min-leaf": lambda: continuous(k=3, min_leaf=4),
    "coded": lambda: coded(None),
    "coded-min-leaf": lambda: coded(None, k=3, min_leaf=3),
    "spread": lambda: spread([1, 9, 4, 2**52], min_leaf=2),
    "spread-2k": lambda: spread([1, 9, 4, 1], k=4),
    "spread-ties": lambda: spread([3, 44, 25, 7], k=3, min_leaf=3),
    "spread-depth": lambda: spread([2**52 // 59, 2**52 // 4, 2**52 // 7, 1], max_depth=2),
    "single-leaf": lambda: vector([numeric("x", uniform(40, 10))], whole(41, 10, 2), k=5),
    "pure": lambda: vector([numeric("x", uniform(42, 40))], [1] * 40),
    "ties": lambda: vector(
        [
            numeric("most", [0.0] * 29 + [1.0] * 11),
            numeric("same", [0.0] * 20 + [1.0] * 20),
            numeric("again", [0.0] * 20 + [1.0] * 20),
        ],
        [0, 1] * 20,
        k=6,
    ),
}


def render(name: str) -> str:
    """One vector as its file has it: a line per field, so that a diff can be read."""
    made = VECTORS[name]()
    expected = made.pop("expected")
    assert isinstance(expected, dict)
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in made.items()]
    results = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in expected.items()]
    lines.append('"expected": {\n' + ",\n".join(results) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    for vector_name in VECTORS:
        (FOLDER / f"{vector_name}.json").write_text(render(vector_name), encoding="utf-8")
    signed_vectors.write_all()
