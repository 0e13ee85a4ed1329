"""A table to try things on: census(), plausible people, any number of rows, the same everywhere.

Every value is looked up or counted with integers, from the raw 64-bit words of numpy's PCG64, whose
stream is fixed; the one float is a whole number of steps divided by ten. Every column has streams
of its own, named after it, so that no column disturbs another and the features of the first rows
do not depend on the number of rows.

Examples:
    >>> table = verix_anon.datasets.census(1000)
    >>> table.num_rows
    1000
"""

from dataclasses import dataclass

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

# Labels that have an order begin with a digit, so that the order of code points is theirs.
_EDUCATION = (
    *("1 no diploma", "2 high school", "3 some college", "4 associate"),
    *("5 bachelor", "6 master", "7 doctorate"),
)
_MARITAL = ("never married", "married", "separated", "divorced", "widowed")
_WORKCLASS = ("private", "self-employed", "own company", "local government", "state", "federal")
_OCCUPATION = (
    *("service", "clerical", "sales", "craft", "machine operator", "transport", "farming"),
    *("technician", "professional", "manager"),
)
_REGION = ("coast", "east", "north", "south", "west")
_SEX = ("female", "male")

# Upper ages of the bands that the next three tables have a row of weights for.
_BAND_ENDS = _ints([18, 20, 24, 29, 39, 54, 69])
_EDUCATION_BY_BAND = (
    (700, 300, 0, 0, 0, 0, 0),
    (140, 420, 440, 0, 0, 0, 0),
    (110, 330, 320, 85, 155, 0, 0),
    (100, 310, 220, 85, 220, 60, 5),
    (100, 310, 210, 85, 200, 75, 20),
    (110, 320, 205, 85, 175, 80, 25),
    (190, 350, 180, 60, 125, 70, 25),
    (290, 350, 150, 40, 95, 50, 25),
)
_MARITAL_BY_BAND = (
    (992, 8, 0, 0, 0),
    (930, 65, 4, 1, 0),
    (760, 210, 15, 14, 1),
    (500, 430, 20, 48, 2),
    (255, 575, 35, 130, 5),
    (120, 615, 40, 205, 20),
    (65, 645, 25, 180, 85),
    (50, 545, 15, 90, 300),
)
_HOURS_BY_BAND = (
    (420, 270, 90, 180, 20, 15, 5),
    (240, 200, 100, 370, 45, 35, 10),
    (120, 110, 90, 510, 85, 70, 15),
    (50, 55, 60, 560, 130, 115, 30),
    (40, 45, 55, 540, 140, 140, 40),
    (40, 45, 55, 540, 135, 145, 40),
    (100, 80, 60, 500, 110, 120, 30),
    (380, 180, 60, 250, 50, 60, 20),
)
# The shortest week and the number of further hours, for each column of the table above.
_HOURS_LOW = _ints([6, 25, 35, 40, 41, 50, 61])
_HOURS_SPAN = _ints([19, 10, 5, 1, 9, 11, 20])

_YEARS_LOW = _ints([5, 12, 13, 14, 16, 17, 19])
_YEARS_SPAN = _ints([7, 1, 2, 2, 1, 2, 2])
# The last row is for the young and single, who live with their parents more often than not.
_SIZE_BY_MARITAL = (
    (420, 260, 160, 100, 45, 15),
    (0, 400, 220, 240, 100, 40),
    (430, 270, 170, 90, 30, 10),
    (480, 270, 150, 70, 20, 10),
    (680, 220, 60, 25, 10, 5),
    (60, 110, 260, 330, 160, 80),
)
_WORKCLASS_BY_OCCUPATION = (
    (760, 70, 10, 100, 40, 20),
    (740, 20, 15, 90, 75, 60),
    (860, 95, 40, 3, 1, 1),
    (800, 145, 20, 20, 5, 10),
    (960, 20, 5, 5, 5, 5),
    (820, 95, 10, 55, 10, 10),
    (520, 430, 35, 5, 5, 5),
    (780, 30, 20, 50, 60, 60),
    (520, 105, 45, 190, 100, 40),
    (680, 110, 90, 50, 30, 40),
)
_OCCUPATION_BY_EDUCATION = (
    (280, 40, 70, 190, 190, 110, 90, 5, 5, 20),
    (180, 140, 110, 190, 130, 90, 50, 20, 20, 70),
    (150, 190, 140, 120, 60, 50, 25, 50, 65, 150),
    (110, 150, 110, 120, 45, 30, 25, 120, 130, 160),
    (50, 100, 160, 40, 15, 10, 15, 60, 280, 270),
    (20, 35, 60, 15, 5, 5, 5, 40, 530, 285),
    (10, 10, 15, 5, 1, 1, 3, 30, 780, 145),
)
# Factors on the weights above.
_OCCUPATION_BY_SEX = ((13, 20, 9, 1, 6, 1, 2, 8, 10, 8), (7, 5, 10, 16, 11, 14, 13, 9, 8, 11))
# How often a short way to work, under 7.2 km, is doubled.
_DISTANCE_BY_REGION = (
    (90, 230, 350, 250, 80),
    (140, 310, 330, 170, 50),
    (100, 220, 300, 260, 120),
    (180, 320, 300, 150, 50),
    (150, 300, 330, 170, 50),
)
_NATIVE_PER_MILLE = _ints([790, 880, 950, 900, 860])

# Points toward a high income. Luck has a standard deviation of 37,837, so of 130 points.
_LUCK_PER_POINT = 290
_AGE_POINTS = np.minimum.reduce([9 * (_AGES - 37), 90 + (_AGES - 47), 90 - 2 * (_AGES - 57)])
_EDUCATION_POINTS = _ints([-110, -45, -5, 15, 95, 140, 200])
_MARITAL_POINTS = _ints([-60, 110, -55, -45, -50])
_WORKCLASS_POINTS = _ints([0, -25, 75, -5, -10, 40])
_OCCUPATION_POINTS = _ints([-80, -15, 15, 0, -30, -20, -90, 35, 50, 75])
_REGION_POINTS = _ints([30, 0, -5, -20, 10])
_GAIN_STEPS = _ints([1, 1000, 4000, 8000])
_GAIN_POINTS = _ints([0, -20, 40, 180, 320])


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
    band = _ints(np.searchsorted(_BAND_ENDS, age))
    region = draws.pick("region", [(300, 220, 110, 250, 120)])
    marital = draws.pick("marital_status", _MARITAL_BY_BAND, band)
    education = draws.pick("education", _EDUCATION_BY_BAND, band)
    is_young_single = (band <= 1) & (marital == 0)
    size_row = np.where(is_young_single, len(_MARITAL), marital)
    return {
        "age": age,
        "band": band,
        "sex": draws.pick("sex", [(485, 515)]),
        "native_born": _ints(draws.below("native_born", 1000) < _NATIVE_PER_MILLE[region]),
        "region": region,
        "marital_status": marital,
        "household_size": 1 + draws.pick("household_size", _SIZE_BY_MARITAL, size_row),
        "education": education,
        "education_years": _YEARS_LOW[education]
        + draws.below("education_years", _YEARS_SPAN[education]),
    }


def _work(draws: _Draws, people: dict[str, Ints]) -> dict[str, Ints]:
    """Draw what they do and have, given who they are."""
    education, age = people["education"], people["age"]
    trades = _ints(_OCCUPATION_BY_EDUCATION)[:, None] * _ints(_OCCUPATION_BY_SEX)
    trade_row = 2 * education + people["sex"]
    occupation = draws.pick("occupation", trades.reshape(-1, len(_OCCUPATION)), trade_row)
    week = draws.pick("hours_per_week", _HOURS_BY_BAND, people["band"])
    doublings = draws.pick("commute_km", _DISTANCE_BY_REGION, people["region"])
    gains_per_mille = 30 + 20 * education + 40 * (age > 40)
    has_gain = draws.below("capital_gain", 1000) < gains_per_mille
    gain_doublings = draws.pick("capital_gain size", [(120, 160, 190, 190, 150, 100, 60, 30)])
    return {
        "occupation": occupation,
        "workclass": draws.pick("workclass", _WORKCLASS_BY_OCCUPATION, occupation),
        "hours_per_week": _HOURS_LOW[week] + draws.below("hours", _HOURS_SPAN[week]),
        "commute_steps": (8 + draws.below("commute_km steps", 64)) << doublings,
        "capital_gain": has_gain * (100 + draws.below("capital_gain rest", 100)) << gain_doublings,
    }


def _has_high_income(draws: _Draws, people: dict[str, Ints]) -> Flags:
    """Find the 24 % with the most points, luck included."""
    married_graduate = (people["marital_status"] == 1) & (people["education"] >= 4)
    points = (
        _AGE_POINTS[people["age"] - _AGES[0]]
        + _EDUCATION_POINTS[people["education"]]
        + _MARITAL_POINTS[people["marital_status"]]
        + _WORKCLASS_POINTS[people["workclass"]]
        + _OCCUPATION_POINTS[people["occupation"]]
        + _REGION_POINTS[people["region"]]
        + _GAIN_POINTS[np.searchsorted(_GAIN_STEPS, people["capital_gain"], side="right")]
        + 3 * (np.clip(people["hours_per_week"], 10, 60) - 40)
        + 20 * people["sex"]
        + 10 * people["native_born"]
        + 30 * married_graduate
    )
    # The sum of the four quarters of a word is as good as normal.
    luck = draws.words("income").view(np.uint16).reshape(-1, 4).sum(axis=1, dtype=np.int64)
    order = np.argsort(-(_LUCK_PER_POINT * points + luck), kind="stable")
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
        "sex": _text(people["sex"], _SEX),
        "native_born": pa.array(people["native_born"] == 1),
        "region": _text(people["region"], _REGION),
        "marital_status": _text(people["marital_status"], _MARITAL),
        "household_size": pa.array(people["household_size"]),
        "education": _text(people["education"], _EDUCATION),
        "education_years": pa.array(people["education_years"]),
        "workclass": _text(people["workclass"], _WORKCLASS, no_class),
        "occupation": _text(people["occupation"], _OCCUPATION, no_trade),
        "hours_per_week": pa.array(people["hours_per_week"]),
        "commute_km": pa.array(people["commute_steps"] / 10, mask=no_way),
        "capital_gain": pa.array(people["capital_gain"]),
        "income": _text(_ints(is_high), ("<=50K", ">50K")),
    }
    return pa.table(columns)


def _text(codes: Ints, labels: tuple[str, ...], is_missing: Flags | None = None) -> pa.StringArray:
    """Turn label positions into strings."""
    positions = pa.array(codes, pa.int64(), mask=is_missing)
    return pa.array(labels).take(positions)
