"""The loops that the engine's design rests on, each beside what would be used instead."""

import hashlib
from typing import Any

import numpy as np

from tools.bench.tables import SEED, best_of
from verix_anon.kernels import growing

MILLION, HASHES, HASH_BYTES = 1_000_000, 75_000, 520


def measure() -> dict[str, object]:
    rng = np.random.default_rng(SEED)
    sorts = [
        _sort("random values", rng.standard_normal(MILLION)),
        _sort("random values", rng.standard_normal(10 * MILLION)),
        _sort("about a hundred values", np.round(rng.standard_normal(MILLION) * 12)),
    ]
    data = rng.bytes(HASHES * HASH_BYTES)
    return {
        "sorts": sorts,
        "partition_ns_per_entry": _partition(rng),
        "hash_seconds": best_of(3, lambda: _hash(data)),
    }


def _sort(table: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, object]:
    n = values.size
    values = values + 0.0
    target, order = np.zeros(n, np.uint8), np.zeros(n, np.uint32)
    buffer = np.zeros((2, n), np.uint64)
    bits = (n - 1).bit_length()
    return {
        "table": table,
        "rows": n,
        "argsort": best_of(3, lambda: np.argsort(values)),
        "sort_column": best_of(4, lambda: growing.sort_column(values, target, order, bits, buffer)),
    }


def _partition(rng: np.random.Generator) -> float:
    n = MILLION
    bits = (n - 1).bit_length()
    order = (rng.permutation(n).astype(np.uint32) << np.uint32(1)).reshape(1, n)
    side = rng.integers(0, 256, n // 8, np.uint8)
    forest = growing.Forest(
        np.zeros((1, n)), np.arange(n, dtype=np.uint32), order, np.array([n]), side, bits, 10, 50
    )
    scratch = np.empty(n, np.uint32)
    # The same sides again and again: what moves is the same whether it moved before or not.
    return best_of(5, lambda: growing.partition(forest, scratch, 0, n, (0, 1))) / n * 1e9


def _hash(data: bytes) -> None:
    for at in range(0, len(data), HASH_BYTES):
        hashlib.sha256(data[at : at + HASH_BYTES]).digest()


def render(result: dict[str, Any]) -> list[str]:
    lines = ["| column | rows | numpy.argsort | sort_column |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {s['table']} | {s['rows']:,} | {s['argsort']:.3f} s | {s['sort_column']:.3f} s |"
        for s in result["sorts"]
    ]
    partition = f"- Partition: {result['partition_ns_per_entry']:.1f} ns an entry."
    hashes = f"- {HASHES:,} hashes of {HASH_BYTES} bytes: {result['hash_seconds']:.3f} s."
    return [*lines, "", partition, hashes, ""]
