"""How long `series risk` takes for twelve releases of a large table, and its peak memory.

The releases are published each by itself, with k and l alone, so the deduction excludes much. Only
the memory of the series is made, by the format that `release --series` writes.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.large import run
from tools.bench.tables import SEED
from verix_anon.arrays import Ints
from verix_anon.client.series.memory import Memory, PastRelease
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.series_log import SeriesEntry

PEOPLE, RELEASES, RETURNING, VALUES = 100_000, 12, 0.6, 14
LARGEST, LEAST = 9, 2
"""People and values of a class"""
SECONDS, GIGABYTES = 60, 4
"""The aims"""
NONE = Digest(bytes(32))


def measure() -> dict[str, object]:
    """Run the command once, on a series in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "monthly" / "series.verix", PEOPLE)
        took = run(Path(folder), ["series", "risk", "monthly"])
    sizes = {"people": PEOPLE, "releases": RELEASES, "returning": RETURNING}
    return {**sizes, "values": VALUES, "l": LEAST, **took}


def write(path: Path, n_people: int) -> None:
    """Write the memory of a series with so many people in each release."""
    rng = np.random.default_rng(SEED)
    persons = [*_batches(rng, n_people)]
    n = 1 + max(int(each.max()) for each in persons)
    place, value = rng.random((n, 2)), (rng.random(n) ** 2 * VALUES).astype(np.int64)
    releases = []
    for number, person in enumerate(persons, 1):
        digests = dict.fromkeys(("contract", "submission", "root", "cells", "file"), NONE)
        entry = SeriesEntry(number=number, time="2026-01-31T12:00:00+00:00", **digests)
        of_class = _classes(place[person], value[person], rng)
        values = {"x": value[person]}
        releases.append(
            PastRelease(entry=entry, table=NONE, person=person, of_class=of_class, values=values)
        )
    memory = Memory(
        key=bytes(32),
        k=5,
        person="id",
        roles={"id": "identifier", "x": "sensitive"},
        diversity={"x": {"l": float(LEAST)}},
        people=rng.integers(0, 256, (n, 16), np.uint8),
        releases=tuple(releases),
    )
    path.parent.mkdir()
    memory.write(path, None)


def _batches(rng: np.random.Generator, n_people: int) -> Iterator[Ints]:
    """The people of each release: some of the one before, and new ones in place of the others."""
    people, first_new = np.arange(n_people), n_people
    for _ in range(RELEASES):
        yield people
        stay = rng.permutation(people)[: round(RETURNING * n_people)]
        people = np.sort(np.append(stay, np.arange(first_new, first_new + n_people - stay.size)))
        first_new += n_people - stay.size


def _classes(place: Any, value: Ints, rng: np.random.Generator) -> Ints:
    """Cut the people in two until a cut would leave too few people or values on a side."""
    of_class, n_classes = np.empty(value.size, np.int64), 0
    left = [np.arange(value.size)]
    while left:
        rows = left.pop()
        some = rows[np.argsort(place[rows, rng.integers(2)], kind="stable")]
        halves = np.split(some, [rows.size // 2])
        if rows.size > LARGEST and all(np.unique(value[h]).size >= LEAST for h in halves):
            left += halves
        else:
            of_class[rows] = n_classes
            n_classes += 1
    return of_class


def render(result: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    what = (
        f"`verix-anon series risk` for {result['releases']} releases of {result['people']:,} people"
        f" each, {result['returning']:.0%} of them returning, a column with {result['values']}"
        f" values, classes of 5 to {LARGEST} people with l = {result['l']}. Each was released by"
        " itself, so nobody waited."
    )
    took = f"{result['wall']:.0f} | {result['processor']:.0f}"
    return [
        what,
        "",
        "| seconds | processor seconds | peak memory | aim |",
        "| ---: | ---: | ---: | ---: |",
        f"| {took} | {result['peak_bytes'] / 1e9:.2f} GB | {SECONDS} s, {GIGABYTES} GB |",
        "",
    ]
