"""Prepare, honest anonymize, verify, release: exactly the genuine rows come back, generalized."""

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import verix_anon
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import ReleaseOptions, Representation
from verix_anon.client.table.categories import as_label

K = 3


Job = tuple[pa.Table, dict[str, list[str]], PrepareOptions]
KINDS: dict[str, Callable[[np.random.Generator, int], pa.Array]] = {
    "numbers": lambda rng, n: pa.array(rng.standard_normal(n).round(2)),
    "few": lambda rng, n: pa.array(rng.integers(0, 4, n)),
    "text": lambda rng, n: pa.array([f"c{i}" for i in rng.integers(0, 6, n)]),
    "dates": lambda rng, n: pa.array(
        [date(1990, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 9000, n)]
    ),
    "truth": lambda rng, n: pa.array(rng.integers(0, 2, n).astype(bool)),
}


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.integers(60, 300))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=6))
    columns = {f"{kind} {i}": KINDS[kind](rng, n_rows) for i, kind in enumerate(kinds)}
    roles: dict[str, list[str]] = {"quasi": [], "identifier": [], "kept": [], "sensitive": []}
    for i, name in enumerate(columns):
        role = "quasi" if i == 0 else draw(st.sampled_from(sorted(roles)))
        roles[role].append(name)
    signal = np.argsort(np.argsort(rng.standard_normal(n_rows)))
    columns["goal"] = pa.array(np.where(signal < n_rows // 3, "yes", "no"))
    names = draw(st.permutations(list(columns)))
    traps = draw(st.sampled_from(list(Traps)))
    options = PrepareOptions(
        traps=traps, witnesses=3, unsafe_seed=draw(st.integers(0, 2**32)), threads=1
    )
    return pa.table({name: columns[name] for name in names}), roles, options


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_journey(job: Job) -> None:
    check_journey(job)


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_many_journeys(job: Job) -> None:
    check_journey(job)


def check_journey(job: Job) -> None:
    table, roles, options = job
    orders = {
        name: sorted({as_label(value) for value in table[name].to_pylist()})
        for name in roles["quasi"]
        if name.startswith(("text", "truth"))
    }
    prepared = prepare(
        table,
        target="goal",
        **roles,  # type: ignore[arg-type]
        orders=orders,
        person="record",
        k=K,
        options=options,
    )
    delivery = verix_anon.LocalProvider(threads=1).anonymize(prepared.submission)
    full = verix_anon.verify(delivery, prepared.manifest, submission=prepared.submission)
    thin = verix_anon.verify(delivery, prepared.manifest)
    assert full.accepted, full
    assert thin.accepted, thin
    made = verix_anon.release(
        delivery,
        prepared.manifest,
        full,
        table=table,
        options=ReleaseOptions(representation=Representation.BOUNDS, exact_ends=True),
    )
    released, table = made.table, table.take(made.rows)
    untouched = [*roles["kept"], *roles["sensitive"], "goal"]
    assert released.num_rows == table.num_rows
    assert released.select(untouched).equals(table.select(untouched))
    assert not set(roles["identifier"]) & set(released.column_names)
    bounds = []
    for name in roles["quasi"]:
        low, high = released[f"{name}_min"].to_pylist(), released[f"{name}_max"].to_pylist()
        values = table[name].to_pylist()
        assert all(a <= v <= b for a, v, b in zip(low, values, high, strict=True)), name
        bounds += [low, high]
    assert min(Counter(zip(*bounds, strict=True)).values()) >= K
