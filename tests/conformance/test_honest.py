"""The honest provider is VERIFIED, on every table, in every mode: no false alarm at all."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conformance import honest
from experiments.data import NAMES, describe, load
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.datasets import census
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Commitment, Kind
from verix_anon.provider.local import LocalProvider

pytestmark = pytest.mark.usefixtures("quick_models")


def assert_verified(made: Prepared) -> None:
    """What the local engine delivers."""
    honest.assert_verified(made, LocalProvider().anonymize(made.submission))


def agreed(commitment: Commitment, **given: Any) -> PrepareOptions:
    """What goes with a commitment: the paper's system with the paper's, else the usual one."""
    is_paper = commitment is Commitment.PAPER
    return PrepareOptions.paper(**given) if is_paper else PrepareOptions(**given)


def of_census(n_rows: int, options: PrepareOptions, *, k: int = 5) -> Prepared:
    return prepare(census(n_rows), target="income", quasi="all", k=k, options=options)


def public(name: str, n_rows: int | None) -> pa.Table:
    """A public table, or so many of its rows drawn at random."""
    try:
        table = load(name)
    except TableError as error:
        pytest.skip(f"the public table is not at hand: {error}")
    if n_rows is None or n_rows >= table.num_rows:
        return table
    chosen = np.random.default_rng(0).choice(table.num_rows, n_rows, replace=False)
    return table.take(np.sort(chosen))


def of_public(name: str, n_rows: int | None, options: PrepareOptions) -> Prepared:
    facts = describe(name)
    return prepare(
        public(name, n_rows),
        target="target",
        quasi="all",
        identifier=facts.identifiers,
        person="record",
        kinds=dict.fromkeys(facts.nominal, Kind.CATEGORICAL),
        options=options,
    )


@pytest.mark.parametrize("name", honest.SUITE)
def test_suite(name: str) -> None:
    assert_verified(honest.SUITE[name]())


@pytest.mark.parametrize("traps", list(Traps))
@pytest.mark.parametrize("commitment", list(Commitment))
def test_census(traps: Traps, commitment: Commitment) -> None:
    options = agreed(commitment, unsafe_seed=1, traps=traps)
    assert_verified(of_census(8_000, options))


@pytest.mark.parametrize("seed", range(2, 6))
def test_census_with_other_secrets(seed: int) -> None:
    assert_verified(of_census(3_000, PrepareOptions(unsafe_seed=seed)))


def test_census_with_a_real_salt() -> None:
    assert_verified(of_census(3_000, PrepareOptions()))


@pytest.mark.parametrize("k", [2, 3, 25, 100, 1500])
def test_census_with_other_k(k: int) -> None:
    assert_verified(of_census(3_000, PrepareOptions(unsafe_seed=1), k=k))


@pytest.mark.parametrize("max_depth", [1, 3])
def test_census_with_a_shallow_tree(max_depth: int) -> None:
    assert_verified(of_census(3_000, PrepareOptions(unsafe_seed=1, max_depth=max_depth)))


@pytest.mark.parametrize("name", NAMES)
def test_public_tables(name: str) -> None:
    # Both commitments and all traps occur, each on several of the tables.
    at = NAMES.index(name)
    options = agreed(list(Commitment)[at % 2], unsafe_seed=7, traps=list(Traps)[at % 3])
    assert_verified(of_public(name, 8_000, options))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_public_tables_at_full_size(name: str) -> None:
    commitment = list(Commitment)[(NAMES.index(name) + 1) % 2]
    assert_verified(of_public(name, None, agreed(commitment, unsafe_seed=8)))


@pytest.mark.long
def test_large_census() -> None:
    assert_verified(of_census(100_000, PrepareOptions(unsafe_seed=1)))


def test_many_small_tables() -> None:
    """Tables of all sizes, columns of few values, rare positives, values near and far."""
    rng = np.random.default_rng(0)
    for seed in range(18):
        n_rows = int(rng.integers(10, 300))
        columns = {
            "few": rng.integers(0, 3, n_rows),
            "constant": np.full(n_rows, 5.0),
            "wide": rng.choice([-1e300, -1e-300, 0.0, 1e-300, 1e300], n_rows),
            "close": 1 + rng.integers(0, 30, n_rows) * 2.0**-52,
            "text": np.array(["a", "b", "c"])[rng.integers(0, 3, n_rows)],
        }
        target = rng.random(n_rows) < rng.choice([0.03, 0.5])
        target[:2] = [True, False]
        table = pa.table({**columns, "y": target})
        k = int(rng.integers(2, 6))
        options = PrepareOptions(unsafe_seed=seed, traps=list(Traps)[seed % 3])
        assert_verified(prepare(table, target="y", quasi="all", k=k, options=options))
