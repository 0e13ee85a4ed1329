"""explore(): what k, rule and diversity would cost, before anything is sent.

Each setting is grown by the provider it is given, on this machine, without traps: so nothing leaves
it, no manifest is made, and no submission or release is counted. Classes are then formed and
measured as release() does it, from the same rows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client import models
from verix_anon.client.arguments import FilePath, check_fields, is_path, options_of
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.prepare.contract_columns import SentTable, check_sent, send
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.privacy_sheet import ColumnLoss, Conditions, Sheet, losses_of
from verix_anon.client.release.classes import Classes, check_reachable, join_leaves
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import means
from verix_anon.client.release.representation import Presentation
from verix_anon.client.release.source import Source
from verix_anon.client.table.columns import owned
from verix_anon.client.table.owner_table import RECORD, OwnerTable, read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.roles_file import USUAL_K, read_reading, read_roles
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verify.utility import measure
from verix_anon.errors import ContractError, NotAcceptedError, TableError
from verix_anon.fields import Fields, to_json
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.records import Records

FORMAT = "verix/exploration/1"
COUNTS = range(1, 2**53)
TITLES = {
    "f1": "F1",
    "macro_f1": "macro F1",
    "auc": "AUC",
    "r2": "R2",
    "mean_absolute_error": "mean error",
}
SAMPLE_ROWS = 20_000
"""Models are made and tested on so many records; more would take longer than the tree."""
TEST_EVERY = 4
USUAL_KS = (2, 5, 10, 25)
USUAL_LS = (1, 2)
SEED = 0
"""Nothing is planted or sent, so nothing must be secret: the same table gives the same page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """One setting, and what its release would be like.

    Examples:
        >>> engine = verix_anon.LocalProvider()
        >>> row = verix_anon.explore("people.csv", "roles.toml", provider=engine).rows[0]
        >>> row.k_reached >= row.k
        True
    """

    k: int
    rule: str
    l: int  # noqa: E741
    """Of the target."""
    is_chosen: bool
    """Whether it is the setting of the roles file."""
    k_reached: int
    """The people in the smallest class."""
    classes: int
    prosecutor_max: float
    """The chance that a record picked for somebody known to be in the table is that person's."""
    prosecutor_mean: float
    ncp: float
    """How much is lost of a value: 0 nothing, 1 all."""
    same_target: float
    """Share of the records in classes of one label."""
    scores: Mapping[str, float]
    """The scores of a model trained on the release, by measure; empty without a target."""
    losses: tuple[ColumnLoss, ...] = ()
    """What is left of each quasi-identifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """The settings that were tried on one table.

    Examples:
        >>> roles = {"target": "income", "quasi": "all"}
        >>> found = verix_anon.explore("people.csv", roles, provider=verix_anon.LocalProvider())
        >>> [row.k for row in found.rows if row.is_chosen]
        [5]
    """

    rows: tuple[Explored, ...]
    raw: Mapping[str, float]
    """The scores of a model trained on raw records."""
    target: str | None
    n_records: int
    tested_on: int
    """How many raw records, which no model has seen, gave the scores."""
    left_out: tuple[str, ...] = ()
    """Settings that cannot be reached, each with the reason."""
    basis: Mapping[str, str] = field(default_factory=dict)
    """Names for the roles and the table that were explored, if they were files: see `basis_of`."""

    @property
    def chosen(self) -> Explored | None:
        """The setting of the roles file, if it was tried."""
        return next((row for row in self.rows if row.is_chosen), None)

    @property
    def has_rules(self) -> bool:
        """Whether several rules were tried."""
        return len({row.rule for row in self.rows}) > 1

    @property
    def head(self) -> tuple[str, ...]:
        """The titles of the columns, as people read them."""
        return tuple(self._shown(self.rows[0]))

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield each row as people read it, under `head`."""
        yield from (tuple(self._shown(row).values()) for row in self.rows)

    def _shown(self, row: Explored) -> dict[str, str]:
        """A row as people read it, by the titles of its columns."""
        return {
            "k": f"{row.k:,}",
            **({"rule": row.rule} if self.has_rules else {}),
            "l": f"{row.l:,}",
            "classes": f"{row.classes:,}",
            "risk": f"{row.prosecutor_max:.3f}",
            "mean risk": f"{row.prosecutor_mean:.4f}",
            "NCP": f"{row.ncp:.3f}",
            **({} if self.target is None else {"one label": f"{row.same_target:.1%}"}),
            **{TITLES[name]: shown(name, row.scores[name]) for name in self.raw},
        }

    def notes(self) -> Iterator[str]:
        """Yield what readers of the rows need to know."""
        if self.raw:
            scores = [f"{TITLES[name]} {shown(name, value)}" for name, value in self.raw.items()]
            reached = " and ".join(scores)
            yield (
                f"A model trained on raw records reaches {reached}; all are tested on"
                f" {self.tested_on:,} raw records that they have not seen."
            )
        yield from (f"Left out: {sentence}" for sentence in self.left_out)

    def is_on(self, basis: Mapping[str, str]) -> bool:
        """Whether it was tried on this, as far as that is known."""
        return basis.items() <= self.basis.items()

    def marked(self, wanted: tuple[int, str, int] | None) -> "Exploration":
        """Return a copy that marks this k, rule and l as chosen, if they were tried."""
        rows = (replace(r, is_chosen=(r.k, r.rule, r.l) == wanted) for r in self.rows)
        return replace(self, rows=tuple(rows))

    def to_json(self) -> str:
        """Return the exploration as JSON."""
        return to_json({"format": FORMAT, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Exploration":
        """Read it back; raises TableError."""
        fields = Fields.parse(text, "the exploration", TableError)
        fields.expect("format", FORMAT)
        rows = tuple(_row(each) for each in fields.each("rows"))
        found = fields.record(cls, optional=("basis",), rows=rows)
        if not found.rows or not set(found.raw) <= set(TITLES):
            raise TableError("the exploration is not one that verix-anon wrote")
        if any(set(row.scores) != set(found.raw) for row in found.rows):
            raise TableError("the exploration's rows have other scores than its raw records")
        return found

    def _repr_html_(self) -> str:
        pairs = zip(self.rows, self.cells(), strict=True)
        marked = (("→" if row.is_chosen else "", *cells) for row, cells in pairs)
        return as_table(marked, ("", *self.head)) + as_list(self.notes())


def shown(name: str, score: float) -> str:
    """A score as people read it."""
    return f"{score:,.4g}" if name == "mean_absolute_error" else f"{score:.3f}"


def _row(fields: Fields) -> Explored:
    return fields.record(
        Explored,
        k=fields.whole("k", COUNTS),
        rule=fields.choice("rule", Rule).value,
        l=fields.whole("l", COUNTS),
        losses=losses_of(fields),
    )


DECIDING = ("importance", "priorities", "min_leaf", "places", "max_depth")
"""The options of prepare() that a tree or its classes depend on, but the rule, which is tried."""


def basis_of(roles: FilePath, table: FilePath | None) -> Mapping[str, str]:
    """Return names for a roles file and a table's file as they are now, without what is tried.

    They are equal if the curves would be equal. A table that is not a file has no name.
    """
    declared = asdict(read_roles(roles)[1])
    hidden, _ = declared.pop("diversity"), declared.pop("release")
    hidden.get(declared["target"], {}).pop("l", None)
    options = PrepareOptions.of_roles(roles)
    said = {
        "declared": declared,
        "hidden": {name: asked for name, asked in hidden.items() if asked},
        "options": {name: getattr(options, name) for name in DECIDING},
        "reading": read_reading(roles).to_json(),
    }
    found = {"columns": sha256(json.dumps(said, default=str).encode()).hexdigest()}
    if table is not None:
        with suppress(OSError, ValueError):
            about = Path(table).stat()
            found["table"] = f"{about.st_size} {about.st_mtime_ns}"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreOptions:
    """Which settings to try; what the roles file says is among those that are not named.

    Examples:
        >>> options = verix_anon.ExploreOptions(k=[5, 10])
        >>> engine = verix_anon.LocalProvider()
        >>> found = verix_anon.explore("people.csv", "roles.toml", provider=engine, options=options)
        >>> sorted({row.k for row in found.rows})
        [5, 10]
    """

    k: Sequence[int] | None = None
    """2, 5, 10 and 25 if nothing is said."""
    rule: Sequence[str] | None = None
    """The one of the roles file if nothing is said."""
    l: Sequence[int] | None = None  # noqa: E741
    """The l of the target to try; by default 1, which asks for nothing, and 2."""
    priorities: Mapping[str, str | float] = field(default_factory=dict)
    """As in PrepareOptions; each wins over the same column's priority in the roles file."""
    progress: Progress = ignore

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("k", "rule", "l"):
            given = getattr(self, name)
            if given is not None and not len(given):
                raise TableError(f"{name} must name at least one to try")
        for least, name in ((2, "k"), (1, "l")):
            if min(getattr(self, name) or (least,)) < least:
                raise TableError(f"{name} must be {least} or more")
        for rule in self.rule or ():
            if rule not in set(Rule):
                raise TableError(f"rules are {', '.join(Rule)}, not {rule!r}")


def explore(
    table: object,
    roles: Declared | Mapping[str, Any] | FilePath,
    *,
    provider: Provider,
    options: ExploreOptions | None = None,
) -> Exploration:
    """Try settings on a table: what each would give away, lose, and be worth.

    Args:
        table: What prepare() takes: a table in memory, or the file of one.
        roles: The file that `verix-anon init` drafted, edited; or what prepare() takes as keywords,
            such as {"target": "income", "quasi": "all"}.
        provider: Who grows the trees; `LocalProvider()`, so that nothing leaves this machine.
        options: Which settings to try.

    Raises:
        TableError: The table does not fit; the message says what to do.
        NotAcceptedError: None of the settings can be reached.

    Examples:
        >>> engine = verix_anon.LocalProvider()
        >>> verix_anon.explore("people.csv", "roles.toml", provider=engine).rows[0].k
        2
    """
    options = options_of(options, ExploreOptions)
    chosen, declared = _chosen(roles)
    reading = read_reading(roles) if is_path(roles) else None
    options.progress("encode", 0, 1)
    read = read_owner_table(owned(table, reading).table, declared, to_publish=True)
    settings = _settings(options, chosen, read.labels.task)
    prepared = PrepareOptions.of_roles(roles) if is_path(roles) else PrepareOptions()
    prepared = replace(prepared, priorities={**prepared.priorities, **options.priorities})
    sent = {rule: _sent(read, prepared, rule) for rule in dict.fromkeys(s.rule for s in settings)}
    source = Source.of(read, read.labels.task, declared.orders, Presentation())
    options.progress("encode", 1, 1)
    trial = _Trial(prepared, declared, source, sent, provider)
    judge = Judge.of(read.matrix, read.labels)
    return _explored(settings, trial, judge, options.progress)


@dataclass(frozen=True, slots=True)
class _Setting:
    """One point to be tried."""

    k: int
    rule: Rule
    l: int  # noqa: E741
    is_chosen: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"k {self.k:,}, {self.rule}, l {self.l}"


def _chosen(roles: Declared | Mapping[str, Any] | FilePath) -> tuple[_Setting, Declared]:
    """What the roles file asks for, and the roles."""
    k, rule = USUAL_K, Rule.IMPORTANCE_SPREAD
    if is_path(roles):
        k, declared = read_roles(roles)
        rule = Rule(PrepareOptions.of_roles(roles).rule)
    elif isinstance(roles, Declared):
        declared = roles
    elif not isinstance(roles, Mapping):
        raise TableError(
            "roles must be the file that init drafted, or a mapping of role to columns"
        )
    else:
        known = Declared.__dataclass_fields__
        for name in roles:
            if name not in known:
                raise TableError(f"there is no role {name!r}; name {', '.join(known)}")
        declared = Declared(**roles)
    asked = declared.diversity.get(declared.target or "", {})
    return _Setting(k, rule, int(asked.get("l", 1)), is_chosen=True), declared


def _settings(options: ExploreOptions, chosen: _Setting, task: Task) -> list[_Setting]:
    """All that are to be tried, in order; the chosen one is among them if it may be."""
    ks = options.k or sorted({*USUAL_KS, chosen.k})
    rules = [Rule(rule) for rule in options.rule or [chosen.rule]]
    ls = options.l or sorted({*USUAL_LS, chosen.l})
    if task is Task.NONE:
        if options.l not in (None, [1], (1,)):
            raise TableError("there is no target, so leave out l (--l)")
        ls = [1]
    found = [_Setting(int(k), rule, int(l)) for rule in rules for k in ks for l in ls]  # noqa: E741
    return [replace(s, is_chosen=s == chosen) for s in dict.fromkeys(found)]


def _sent(table: OwnerTable, options: PrepareOptions, rule: Rule) -> SentTable:
    # Coded even where clear columns were agreed on: the tree is the same, and the values are ours.
    # The paper's rule has no weights.
    priorities = options.priorities if rule is Rule.IMPORTANCE_SPREAD else {}
    coded = replace(options, rule=rule, clear=False, priorities=priorities)
    check_sent(table, coded)
    values = [table.imputed(j) for j in range(len(table.quasi))]
    nobody = [np.empty(0)] * len(values)
    return send(table, values, nobody, coded, Secret.unsafe_from_seed(SEED))


@dataclass(frozen=True, slots=True)
class _Trial:
    """The table, and who grows its trees."""

    options: PrepareOptions
    declared: Declared
    source: Source
    sent: Mapping[Rule, SentTable]
    provider: Provider

    def grown(self, k: int, rule: Rule) -> Delivery:
        """The tree of one k and rule; trackers are blank, for no one has to find a record again."""
        sent = self.sent[rule]
        contract = Contract(
            submission_id="0" * 32,
            k=k,
            min_leaf=self.options.least(k),
            rule=rule,
            columns=sent.columns,
            max_depth=self.options.max_depth,
        )
        blank = np.zeros((sent.target.size, 32), np.uint8)
        values = np.array(sent.values, np.float64)
        records = Records(tracker=blank, values=values, target=sent.target)
        return self.provider.anonymize(Submission(contract=contract, records=records))

    def classes(self, delivery: Delivery, setting: _Setting) -> Classes:
        """The classes that one setting makes of a delivery's leaves."""
        leaf_of_row: Ids = np.empty(delivery.records.row.size, np.int32)
        leaf_of_row[delivery.records.row] = delivery.records.leaf
        conditions, secret = self.conditions(setting), Secret.unsafe_from_seed(SEED)
        return join_leaves(delivery.tree, leaf_of_row, self.source, conditions, secret)

    def check(self, setting: _Setting) -> None:
        """Refuse a setting that the whole table cannot meet, before its tree is grown."""
        source, asked = self.source, self.conditions(setting).enforced
        check_reachable(source.n_rows, source.person_of_row, source.attributes, setting.k, asked)

    def conditions(self, setting: _Setting) -> Conditions:
        """What the roles file asks for, with this k, and this l of the target."""
        asked = {name: dict(measures) for name, measures in self.declared.diversity.items()}
        if self.declared.target is not None:
            asked.setdefault(self.declared.target, {})["l"] = setting.l
        return Conditions(
            k_agreed=setting.k,
            enforced=asked,
            counted_by=self.source.person or RECORD,
            released_before=None,
            missing={},
            missing_as=str(self.declared.missing),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Some records of the table, most to train on and the rest to test on."""

    values: Floats
    """(n_quasi, n_rows), of the whole table"""
    labels: Labels
    trained: Ints
    tested: Ints

    @classmethod
    def of(cls, values: Floats, labels: Labels) -> "Judge":
        """Records at random, the same ones each time; none are tested if no model can be made."""
        some = np.random.default_rng(0).permutation(values.shape[1])[:SAMPLE_ROWS]
        is_test = np.arange(some.size) % TEST_EVERY == TEST_EVERY - 1
        trained, tested = some[~is_test], some[is_test]
        can_score = labels.task is not Task.NONE and all(
            np.unique(labels.values[rows]).size > 1 for rows in (trained, tested)
        )
        return cls(values, labels, trained, tested if can_score else tested[:0])

    def raw(self) -> Mapping[str, float]:
        """Score a model of the raw records; empty if no model can be made."""
        return self._scored(self.values[:, self.trained].T)

    def score(self, classes: Grouped) -> Mapping[str, float]:
        """Score a model of the released records, where each value is the mean of its class."""
        class_of_row = np.empty(classes.order.size, np.int64)
        class_of_row[classes.order] = np.repeat(np.arange(classes.count.size), classes.count)
        own = class_of_row[self.trained]
        released = np.empty((own.size, self.values.shape[0]))
        for j, values in enumerate(self.values):
            laid = values[classes.order]
            missing = np.add.reduceat(np.isnan(laid).astype(np.int64), classes.start[:-1])
            of_class = means(laid, classes, missing)
            of_class[missing == classes.count] = np.nan
            released[:, j] = of_class[own]
        return self._scored(released)

    def _scored(self, rows: Floats) -> Mapping[str, float]:
        if not self.tested.size:
            return {}
        unseen = self.values[:, self.tested].T
        said = models.predict(rows, self.labels.of(self.trained), unseen)
        return measure(self.labels.of(self.tested), said)


def _explored(
    settings: Sequence[_Setting], trial: _Trial, judge: Judge, progress: Progress
) -> Exploration:
    left_out: list[str] = []
    rows: list[tuple[_Setting, Sheet, Future[Mapping[str, float]]]] = []
    # Models take most of the time, and a core each: they are fitted beside growing.
    with ThreadPoolExecutor(2) as beside:
        raw = beside.submit(judge.raw)
        for done, (setting, classes) in enumerate(_reachable(settings, trial, left_out)):
            progress("settings", done, len(settings))
            try:
                sheet = classes.measure(classes.write(Presentation()))
            except NotAcceptedError as error:
                left_out.append(f"{setting}: {error}")
                continue
            rows.append((setting, sheet, beside.submit(judge.score, classes.grouped)))
        explored = tuple(
            Explored(
                k=setting.k,
                rule=setting.rule.value,
                l=setting.l,
                is_chosen=setting.is_chosen,
                k_reached=sheet.k,
                classes=sheet.n_classes,
                prosecutor_max=sheet.prosecutor_max,
                prosecutor_mean=sheet.prosecutor_mean,
                ncp=sheet.ncp,
                same_target=sheet.same_target,
                scores=score.result(),
                losses=sheet.losses,
            )
            for setting, sheet, score in rows
        )
        progress("settings", len(settings), len(settings))
    if not explored:
        raise NotAcceptedError(f"no setting can be reached: {'; '.join(left_out)}")
    return Exploration(
        rows=explored,
        raw=raw.result(),
        target=trial.declared.target,
        n_records=trial.source.n_rows,
        tested_on=judge.tested.size,
        left_out=tuple(left_out),
    )


def _reachable(
    settings: Sequence[_Setting], trial: _Trial, left_out: list[str]
) -> Iterator[tuple[_Setting, Classes]]:
    """The classes of each setting that can be reached; trees are grown once for every l."""
    grown: tuple[object, Delivery] | None = None
    for setting in settings:
        try:
            trial.check(setting)
            if grown is None or grown[0] != (setting.k, setting.rule):
                grown = (setting.k, setting.rule), trial.grown(setting.k, setting.rule)
            yield setting, trial.classes(grown[1], setting)
        except (NotAcceptedError, ContractError, TableError) as error:
            left_out.append(f"{setting}: {error}")
