"""A table to try things on: census() makes any number of plausible people, always the same ones.

Every value is looked up or counted with integers, from the raw 64-bit words of numpy's PCG64, whose
stream is fixed; the one float is a whole number of steps divided by ten. Every column has streams
of its own, named after it, so that no column disturbs another and the features of the first rows
do not depend on the number of rows.

Examples:
    >>> table = verix_anon.datasets.census(1000)
    >>> table.num_rows
    1000
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verix_anon.arrays import Flags, Ints, Words
from verix_anon.errors import TableError


def _ints(values: npt.ArrayLike) -> Ints:
    """Make an array of 64-bit integers, which are not the default everywhere."""
    return np.asarray(values, dtype=np.int64)


# A draw is a whole number below 2^24: fine enough for any weight below.
_BITS = 24
_CENSUS_YEAR = 2020
_AGES = _ints(range(17, 91))
_AGE_WEIGHTS = np.minimum.reduce([8 * (_AGES - 14), np.full_like(_AGES, 80), 2 * (92 - _AGES)])

_DATA = tomllib.loads((files("verix_anon") / "datasets.toml").read_text("utf-8"))
_LABELS, _WEIGHTS = _DATA["labels"], _DATA["weights"]
_SPANS = {name: _ints(values) for name, values in _DATA["spans"].items()}
_POINTS = {name: _ints(values) for name, values in _DATA["points"].items()}
_AGE_POINTS = np.minimum.reduce([9 * (_AGES - 37), 90 + (_AGES - 47), 90 - 2 * (_AGES - 57)])


@dataclass(frozen=True, slots=True)
class _Draws:
    """The random words of one table."""

    n: int
    seed: int

    def words(self, stream: str) -> Words:
        """Return the n raw words of a stream."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=tuple(stream.encode()))
        return np.random.PCG64(seeds).random_raw(self.n)

    def below(self, stream: str, span: int | Ints) -> Ints:
        """Draw whole numbers from 0 to span - 1, evenly."""
        draws = (self.words(stream) >> np.uint64(64 - _BITS)).astype(np.int64)
        return draws * span >> _BITS

    def pick(self, stream: str, weights: npt.ArrayLike, row: int | Ints = 0) -> Ints:
        """Draw a column number for each person, by the weights in that person's row."""
        cumulative = np.cumsum(_ints(weights), axis=1)
        n_rows, n_columns = cumulative.shape
        # The rows are laid end to end, each 2^24 long, so that one search serves all of them.
        ends = (cumulative << _BITS) // cumulative[:, -1:] + (
            _ints(range(n_rows))[:, None] << _BITS
        )
        place = self.below(stream, 1 << _BITS) + (row << _BITS)
        return _ints(np.searchsorted(ends.ravel(), place, side="right") - row * n_columns)


def census(n: int, seed: int = 0) -> pa.Table:
    """Make a census-like table of n invented people; 24 % of them have a high income.

    | column | type | meaning |
    | --- | --- | --- |
    | `age` | int64 | years completed at the end of 2020, 17 to 90 |
    | `birth_date` | date32 | agrees with `age` |
    | `sex` | string | `female` or `male` |
    | `native_born` | bool | born in the country |
    | `region` | string | one of five |
    | `marital_status` | string | one of five |
    | `household_size` | int64 | people in the household, 1 to 6 |
    | `education` | string | seven levels, `1 no diploma` to `7 doctorate` |
    | `education_years` | int64 | agrees with `education`, 5 to 20 |
    | `workclass` | string | who employs the person; some missing |
    | `occupation` | string | one of ten; some missing |
    | `hours_per_week` | int64 | usual working hours, 6 to 80 |
    | `commute_km` | double | way to work in steps of 0.1 km; some missing |
    | `capital_gain` | int64 | 0 for nine in ten |
    | `income` | string | the target: `>50K` for exactly round(0.24 n) rows, else `<=50K` |

    Args:
        n: number of rows, at least 1.
        seed: another seed gives other people; at least 0.

    Raises:
        TableError: n or seed is too small.

    """
    if n < 1:
        raise TableError(f"A census needs at least one row, but n is {n}.")
    if seed < 0:
        raise TableError(f"The seed of a census cannot be negative, but it is {seed}.")
    draws = _Draws(n, seed)
    people = _people(draws)
    people |= _work(draws, people)
    return _table(draws, people)


def _people(draws: _Draws) -> dict[str, Ints]:
    """Draw who they are, as numbers and label positions."""
    age = _AGES[draws.pick("age", [_AGE_WEIGHTS])]
    band = _ints(np.searchsorted(_WEIGHTS["band_ends"], age))
    region = draws.pick("region", _WEIGHTS["region"])
    marital = draws.pick("marital_status", _WEIGHTS["marital"], band)
    education = draws.pick("education", _WEIGHTS["education"], band)
    is_young_single = (band <= 1) & (marital == 0)
    size_row = np.where(is_young_single, len(_LABELS["marital"]), marital)
    return {
        "age": age,
        "band": band,
        "sex": draws.pick("sex", _WEIGHTS["sex"]),
        "native_born": _ints(draws.below("native_born", 1000) < _SPANS["native_per_mille"][region]),
        "region": region,
        "marital_status": marital,
        "household_size": 1
        + draws.pick("household_size", _WEIGHTS["household_size_by_marital"], size_row),
        "education": education,
        "education_years": _SPANS["years_low"][education]
        + draws.below("education_years", _SPANS["years"][education]),
    }


def _work(draws: _Draws, people: dict[str, Ints]) -> dict[str, Ints]:
    """Draw what they do and have, given who they are."""
    education, age = people["education"], people["age"]
    by_education = _ints(_WEIGHTS["occupation_by_education"])
    trades = by_education[:, None] * _ints(_WEIGHTS["occupation_by_sex"])
    trade_row = 2 * education + people["sex"]
    occupation = draws.pick("occupation", trades.reshape(-1, by_education.shape[1]), trade_row)
    week = draws.pick("hours_per_week", _WEIGHTS["hours"], people["band"])
    doublings = draws.pick("commute_km", _WEIGHTS["distance_by_region"], people["region"])
    gains_per_mille = 30 + 20 * education + 40 * (age > 40)
    has_gain = draws.below("capital_gain", 1000) < gains_per_mille
    gain_doublings = draws.pick("capital_gain size", _WEIGHTS["gain_doublings"])
    return {
        "occupation": occupation,
        "workclass": draws.pick("workclass", _WEIGHTS["workclass_by_occupation"], occupation),
        "hours_per_week": _SPANS["hours_low"][week] + draws.below("hours", _SPANS["hours"][week]),
        "commute_steps": (8 + draws.below("commute_km steps", 64)) << doublings,
        "capital_gain": has_gain * (100 + draws.below("capital_gain rest", 100)) << gain_doublings,
    }


def _has_high_income(draws: _Draws, people: dict[str, Ints]) -> Flags:
    """Find the 24 % with the most points, luck included."""
    married_graduate = (people["marital_status"] == 1) & (people["education"] >= 4)
    points = (
        _AGE_POINTS[people["age"] - _AGES[0]]
        + _POINTS["education"][people["education"]]
        + _POINTS["marital"][people["marital_status"]]
        + _POINTS["workclass"][people["workclass"]]
        + _POINTS["occupation"][people["occupation"]]
        + _POINTS["region"][people["region"]]
        + _POINTS["gain"][
            np.searchsorted(_POINTS["gain_steps"], people["capital_gain"], side="right")
        ]
        + 3 * (np.clip(people["hours_per_week"], 10, 60) - 40)
        + 20 * people["sex"]
        + 10 * people["native_born"]
        + 30 * married_graduate
    )
    # The sum of the four quarters of a word is as good as normal.
    luck = draws.words("income").view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int64)
    order = np.argsort(-(_POINTS["luck_per_point"] * points + luck), kind="stable")
    is_high = np.zeros(draws.n, dtype=np.bool_)
    # 6 n / 25 is never halfway between two whole numbers, so this is round(0.24 n) without floats.
    is_high[order[: (12 * draws.n + 25) // 50]] = True
    return is_high


def _table(draws: _Draws, people: dict[str, Ints]) -> pa.Table:
    """Turn the people into an Arrow table, with some answers missing."""
    no_class = draws.below("workclass gap", 1000) < 35
    no_trade = no_class | (draws.below("occupation gap", 1000) < 10)
    no_way = draws.below("commute_km gap", 1000) < 45
    new_year = (_CENSUS_YEAR - 1970 - people["age"]).astype("datetime64[Y]")
    birth_date = new_year.astype("datetime64[D]") + draws.below("birth_date", 365)
    is_high = _has_high_income(draws, people)
    columns = {
        "age": pa.array(people["age"]),
        "birth_date": pa.array(birth_date),
        "sex": _text(people["sex"], _LABELS["sex"]),
        "native_born": pa.array(people["native_born"] == 1),
        "region": _text(people["region"], _LABELS["region"]),
        "marital_status": _text(people["marital_status"], _LABELS["marital"]),
        "household_size": pa.array(people["household_size"]),
        "education": _text(people["education"], _LABELS["education"]),
        "education_years": pa.array(people["education_years"]),
        "workclass": _text(people["workclass"], _LABELS["workclass"], no_class),
        "occupation": _text(people["occupation"], _LABELS["occupation"], no_trade),
        "hours_per_week": pa.array(people["hours_per_week"]),
        "commute_km": pa.array(people["commute_steps"] / 10, mask=no_way),
        "capital_gain": pa.array(people["capital_gain"]),
        "income": _text(_ints(is_high), ("<=50K", ">50K")),
    }
    return pa.table(columns)


def _text(codes: Ints, labels: Sequence[str], is_missing: Flags | None = None) -> pa.StringArray:
    """Turn label positions into strings."""
    positions = pa.array(codes, pa.int64(), mask=is_missing)
    return pa.array(labels).take(positions)
