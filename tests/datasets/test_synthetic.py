"""The invented census is the same everywhere."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verix_anon.datasets import census
from verix_anon.errors import TableError

GOLDEN = "bfde2489c8cf5fb62012a9226630c708ec615428f81d7f8811fcada2f617b75e"


def digest(table: pa.Table) -> str:
    """SHA-256 over the names, types and values of the columns."""
    hasher = hashlib.sha256()
    for name in table.column_names:
        column = table[name]
        hasher.update(f"{name} {column.type} {column.to_pylist()}\n".encode())
    return hasher.hexdigest()


class TestCensus:
    def test_golden(self) -> None:
        assert digest(census(1000, 0)) == GOLDEN

    def test_seeds_differ(self) -> None:
        assert digest(census(100, 1)) != digest(census(100, 2))
        assert census(100, 2**200).num_rows == 100

    @settings(max_examples=25, deadline=None)
    @given(n=st.integers(1, 500), seed=st.integers(0, 2**70))
    def test_positives_and_target(self, n: int, seed: int) -> None:
        income = census(n, seed)["income"].to_pylist()
        assert len(income) == n
        assert income.count(">50K") == round(0.24 * n)
        assert set(income) <= {"<=50K", ">50K"}

    def test_features_do_not_depend_on_the_number_of_rows(self) -> None:
        few, many = census(50, 3), census(5000, 3)
        assert few.drop_columns(["income"]) == many.slice(0, 50).drop_columns(["income"])

    def test_missing_values(self) -> None:
        table = census(20_000)
        shares = {name: table[name].null_count / 20_000 for name in table.column_names}
        some = {name for name, share in shares.items() if share > 0}
        assert some == {"workclass", "occupation", "commute_km"}
        assert all(0.02 < shares[name] < 0.08 for name in some)

    def test_people_are_plausible(self) -> None:
        rows = census(20_000).to_pylist()
        for row in rows:
            assert row["birth_date"].year == 2020 - row["age"]
            assert row["education_years"] <= row["age"] - 5
            assert not (row["education"] == "7 doctorate" and row["age"] < 25)
            assert not (row["marital_status"] == "widowed" and row["age"] < 21)
            assert not (row["marital_status"] == "married" and row["household_size"] == 1)
        assert 0.85 < sum(row["capital_gain"] == 0 for row in rows) / len(rows) < 0.95
        assert {row["age"] for row in rows} == set(range(17, 91))

    def test_signal(self) -> None:
        ensemble = pytest.importorskip("sklearn.ensemble")
        metrics = pytest.importorskip("sklearn.metrics")
        table = census(12_000)
        target = np.array(table["income"].to_pylist()) == ">50K"
        columns = [
            _codes(table[name].to_pylist()) for name in table.column_names if name != "income"
        ]
        features = np.column_stack(columns)
        forest = ensemble.RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
        forest.fit(features[:8000], target[:8000])
        auc = metrics.roc_auc_score(target[8000:], forest.predict_proba(features[8000:])[:, 1])
        assert 0.85 < auc < 0.92

    @pytest.mark.parametrize(("n", "seed", "words"), [(0, 0, "one row"), (1, -1, "negative")])
    def test_refuses(self, n: int, seed: int, words: str) -> None:
        with pytest.raises(TableError, match=words):
            census(n, seed)


def _codes(values: list[object]) -> "np.typing.NDArray[np.intp]":
    texts = [str(value).zfill(12) for value in values]
    return np.unique(texts, return_inverse=True)[1]
