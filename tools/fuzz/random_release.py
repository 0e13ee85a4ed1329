"""A random table with roles, and everything that a release may be asked for (spec §12)."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

from verix_anon.client.release import ReleaseOptions, Representation
from verix_anon.client.table.roles import Declared

SERIAL = "serial"
"""A kept column that numbers the owner's rows, so that a published row is found in the table."""
PATIENT = "patient"
TOWNS = ("ash", "elm", "fir", "oak", "yew", "box, tree", "a..b")
SIZES = ("small", "medium", "large", "huge")
ILLNESSES = ("flu", "cold", "gout", "measles", "none")
CHAPTERS = {
    "I21.0": "I00-I99",
    "I10": "I00-I99",
    "J45.1": "J00-J99",
    "C50.9": "C00-D48",
    "E11.9": "E00-E90",
    "K35": "K00-K93",
}
CODES = tuple(CHAPTERS)
Values = list[Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One table, and what is to become of it."""

    table: pa.Table
    """The owner's columns."""
    declared: Declared
    k: int
    options: ReleaseOptions
    diversity: dict[str, dict[str, float]]
    """What is asked of each column: l, cap and t, from the roles and from the options."""
    said: dict[str, Any]
    """What the roles say of the release: `round`, `top_code`, `bins`, `drop`, `suppress`."""
    suffix: str


@dataclass(slots=True)
class _Drawn:
    """What has been drawn so far."""

    rng: random.Random
    n: int
    columns: dict[str, Values] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(
        default_factory=lambda: {"quasi": [], "kept": [SERIAL], "sensitive": [], "identifier": []}
    )
    derived: dict[str, dict[str, object]] = field(default_factory=dict)

    def add(self, name: str, values: Values, kind: pa.DataType, role: str) -> None:
        self.columns[name], self.types[name] = values, kind
        self.roles[role].append(name)

    def kind(self, name: str) -> str:
        """What remedies a column can have: those of numbers, dates or text."""
        kind = self.types.get(name)
        if name in self.derived:
            way = self.derived[name].get("as", "text" if "prefix" in self.derived[name] else "age")
            return "number" if way in ("age", "year") else "text"
        if kind is None or pa.types.is_string(kind) or pa.types.is_boolean(kind):
            return "text"
        return "date" if pa.types.is_temporal(kind) else "number"


def _perhaps_missing(rng: random.Random, values: Values) -> Values:
    share = rng.choice([0, 0, 0, 0.05, 0.4])
    return [None if rng.random() < share else value for value in values]


def _each(draw: Callable[[], Any]) -> Callable[[random.Random, int], Values]:
    return lambda rng, n: _perhaps_missing(rng, [draw() for _ in range(n)])


def _makers(rng: random.Random) -> dict[str, tuple[pa.DataType, Callable[[], Any]]]:
    """Ways to draw one value of each kind of column."""
    day, spread = date(rng.choice([1920, 1969, 1999]), 1, 1), rng.choice([40, 900, 25_000])
    low, high = rng.choice([(0, 90), (-9, 9), (18, 21), (0, 10**6)])
    scale, digits = rng.choice([1.0, 1e-3, 1e4]), rng.choice([1, 2, 16])
    few = rng.sample(TOWNS, rng.choice([1, 2, 5, 7]))
    zips = [f"{rng.randrange(10**5):05}" for _ in range(rng.choice([3, 12]))]
    weights = [8, 4, 2, 1, 1]
    return {
        "age": (pa.int64(), lambda: rng.randint(low, high)),
        "score": (pa.float64(), lambda: round(rng.gauss(0, 1) * scale, digits)),
        "born": (pa.date32(), lambda: day + timedelta(rng.randrange(spread))),
        "seen": (
            pa.timestamp("s"),
            lambda: datetime(2020, 1, 1) + timedelta(seconds=rng.randrange(10**7)),
        ),
        "town": (pa.string(), lambda: rng.choice(few)),
        "size": (pa.string(), lambda: rng.choice(SIZES)),
        "zip": (pa.string(), lambda: rng.choice(zips)),
        "flag": (pa.bool_(), lambda: rng.random() < 0.3),
        "illness": (pa.string(), lambda: rng.choices(ILLNESSES, weights)[0]),
        "cost": (pa.float64(), lambda: round(rng.lognormvariate(3, 1), digits % 3)),
        "grade": (pa.int64(), lambda: rng.choices([1, 2, 3, 4, 6], weights)[0]),
        "since": (pa.date32(), lambda: date(2019, 12, 1) + timedelta(rng.randrange(400))),
        "code": (pa.string(), lambda: rng.choice(CODES)),
        "price": (pa.float64(), lambda: round(rng.random() * 100, 2)),
        "note": (pa.string(), lambda: rng.choice(["good", "bad", "so-so", "a longer one"])),
        "stay": (pa.int64(), lambda: rng.randrange(30)),
    }


QUASI = ("age", "score", "born", "seen", "town", "size", "zip", "flag")
BOUNDED = ("age", "score", "born", "seen", "size")
"""Of these a class has bounds, if `size` has its order."""
SENSITIVE = ("illness", "cost", "grade", "since", "code", "flag")
KEPT = ("price", "note", "stay", "since")
DERIVED: dict[str, dict[str, object]] = {
    "years": {"from": "born", "as": "age", "at": "2080-06-01"},
    "year": {"from": "born", "as": "year"},
    "month": {"from": "born", "as": "month"},
    "area": {"from": "zip", "prefix": 3},
    "step": {"from": "age", "width": 7},
    "chapter": {"from": "code", "as": "chapter"},
    "begin": {"from": "since", "as": "month"},
}


def random_release(rng: random.Random) -> Asked:
    """Draw a table of 30 to 300 rows and the options of its release."""
    drawn = _Drawn(rng, rng.choice([30, 45, 60, 100, 300]))
    drawn.columns[SERIAL], drawn.types[SERIAL] = [*range(drawn.n)], pa.int64()
    makers, wanted = _makers(rng), rng.choice([Representation.INTERVAL, *Representation])
    is_bounds = wanted is Representation.BOUNDS
    for role, names, counts in (
        ("quasi", BOUNDED if is_bounds else QUASI, (1, 2, 3, 4)),
        ("sensitive", SENSITIVE, (0, 1, 1, 2)),
        ("kept", KEPT, (0, 1, 2)),
    ):
        left = [name for name in names if name not in drawn.columns]
        for name in rng.sample(left, rng.choice(counts)):
            kind, draw = makers[name]
            drawn.add(name, _each(draw)(rng, drawn.n), kind, role)
    _derive(drawn)
    target = _target(drawn)
    person = _people(drawn)
    order = [*drawn.columns]
    rng.shuffle(order)
    table = pa.table({name: pa.array(drawn.columns[name], drawn.types[name]) for name in order})
    said, given = _diversity(drawn, target), _diversity(drawn, target)
    remedies, more = _remedies(drawn, rng.choice([0, 0, 0.2])), _remedies(drawn, 0.25)
    dropped = [*remedies["drop"], *more["drop"]]
    given = {name: asked for name, asked in given.items() if name not in dropped}
    by_measure: dict[str, dict[str, float]] = {}
    for name, asked in given.items():
        for measure, value in asked.items():
            by_measure.setdefault(measure, {})[name] = value
    asked_of = {
        name: {**said.get(name, {}), **given.get(name, {})}
        for name in {*said, *given}
        if name not in dropped
    }
    caps = {name: f"{low}:{high}" for name, (low, high) in remedies["top_code"].items()}
    remedies |= {"round": remedies.pop("round_to"), "top_code": caps}
    pseudonym = rng.choice([None, "who"]) if person == PATIENT else None
    quasi, has_order = drawn.roles["quasi"], is_bounds or rng.random() < 0.5
    declared = Declared(
        target=target,
        **drawn.roles,  # type: ignore[arg-type]
        person=person,
        task=None if target else "none",
        orders={"size": SIZES} if "size" in quasi and has_order else {},
        hierarchies={
            name: kind
            for name, kind in (("zip", "prefix"), ("born", "date"))
            if name in quasi and rng.random() < 0.5
        },
        missing=rng.choice(["mark", "impute"]),
        derived=drawn.derived,
        diversity=said,
        release=remedies,
        pseudonym=rng.choice([None, pseudonym]),
    )
    options = ReleaseOptions(
        representation=wanted,
        representations={
            name: rng.choice([*Representation]) for name in quasi if rng.random() < 0.05
        },
        pseudonym=pseudonym,
        keep_order=rng.random() < 0.2,
        exact_ends=rng.random() < 0.2,
        form=rng.choice(["", "", "excel-de", "excel"]),
        **by_measure,  # type: ignore[arg-type]
        **more,
    )
    suffix = rng.choices(["csv", "parquet", "xlsx"], [6, 4, 1])[0]
    return Asked(table, declared, rng.choice([2, 3, 5, 7]), options, asked_of, remedies, suffix)


def _derive(drawn: _Drawn) -> None:
    """Make columns of others, each with the role of its source or beside it."""
    for name, made in DERIVED.items():
        source = str(made["from"])
        if source not in drawn.columns or drawn.rng.random() > 0.2:
            continue
        role = next((r for r, names in drawn.roles.items() if source in names), "quasi")
        drawn.derived[name] = made
        if drawn.rng.random() < 0.7 and source in drawn.roles[role]:
            # Without a role of its own it is left out.
            drawn.roles[role].remove(source)
        drawn.roles[role].append(name)


def _target(drawn: _Drawn) -> str | None:
    rng, n = drawn.rng, drawn.n
    kinds: dict[str, Callable[[], Any]] = {
        "rich": lambda: rng.choice(["no", "no", "yes"]),
        "group": lambda: rng.choice(["a", "b", "c", "d"]),
        "income": lambda: round(rng.lognormvariate(5, 1), 1),
    }
    name = rng.choice([None, None, *kinds])
    if name is not None:
        drawn.columns[name] = [kinds[name]() for _ in range(n)]
        drawn.types[name] = pa.float64() if name == "income" else pa.string()
    return name


def _people(drawn: _Drawn) -> str | None:
    """Perhaps a column that names people, most of whom have several records."""
    rng = drawn.rng
    way = rng.choice([None, None, PATIENT, PATIENT, "record", "published"])
    if way is None:
        return None
    n_people = max(drawn.n // rng.choice([1, 2, 4]), 1)
    values: Values = [f"p{rng.randrange(n_people)}" for _ in range(drawn.n)]
    drawn.add(
        PATIENT,
        _perhaps_missing(rng, values),
        pa.string(),
        "kept" if way == "published" else "identifier",
    )
    return "record" if way == "record" else PATIENT


def _diversity(drawn: _Drawn, target: str | None) -> dict[str, dict[str, float]]:
    """What to ask of the target and of sensitive columns."""
    rng, found = drawn.rng, dict[str, dict[str, float]]()
    values: dict[str, list[float]] = {
        "l": [1, 2, 2, 3],
        "cap": [0.5, 0.6, 0.75, 0.9, 1],
        "t": [0.1, 0.2, 0.3, 0.5],
    }
    for name in [*drawn.roles["sensitive"], *([target] if target else [])]:
        if rng.random() < 0.5:
            measures = rng.sample(list(values), rng.choice([1, 1, 2]))
            found[name] = {measure: rng.choice(values[measure]) for measure in measures}
    return found


def _remedies(drawn: _Drawn, chance: float) -> dict[str, Any]:
    """Rounding, caps, bins, dropped columns and suppression."""
    rng = drawn.rng
    round_to, top_code, bins = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    found: dict[str, Any] = {"drop": []}
    for role in ("quasi", "sensitive", "kept"):
        for name in drawn.roles[role]:
            if name in (SERIAL, PATIENT) or rng.random() >= chance:
                continue
            kind = drawn.kind(name)
            way = rng.choice(["round", "top", "bins", "drop", "round+top", "bins+top"])
            if way == "drop":
                found["drop"] += [name] if rng.random() < 0.4 else []
                continue
            if "round" in way and kind != "text":
                steps = ["month", "quarter", "year", 30] if kind == "date" else [1, 5, 0.5, 10]
                round_to[name] = rng.choice(steps)
            if "top" in way and kind == "number":
                top_code[name] = rng.choice([(2, 60), (-1, 4), (20, 70)])
            if "bins" in way:
                widths: dict[str, list[Any]] = {
                    "date": ["5y", "1m", "2q", "2w"],
                    "number": [2, 5, 10, 0.5],
                }
                bins[name] = rng.choice([*widths.get(kind, [1, 2, 3]), "auto"])
    found |= {"top_code": top_code, "bins": bins}
    if rng.random() < chance / 4:
        found["bins"] = "auto"
    found["suppress"] = rng.choice([0, 0, 0, 0.02, 0.1, 0.3]) if chance else 0
    return found | {"round_to": round_to}
