"""explore(): what k, rule and diversity would cost, before anything is sent.

Each setting is grown by the provider it is given, on this machine, without traps: so nothing leaves
it, no manifest is made, and no submission or release is counted. Classes are then formed and
measured as release() does it, from the same rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verix_anon.arrays import Floats, Ids, Ints
from verix_anon.client import models
from verix_anon.client.arguments import FilePath, check_fields, is_path, options_of
from verix_anon.client.explore.exploration import Exploration, Explored
from verix_anon.client.prepare.contract_columns import SentTable, check_sent, send
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.privacy_sheet import Conditions, Sheet
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
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.protocol.table import Records

__all__ = ["Exploration", "ExploreOptions", "Explored", "explore"]
SAMPLE_ROWS = 20_000
"""Of how many records models are made and tested: more would take longer than growing the tree."""
TEST_EVERY = 4
USUAL_KS = (2, 5, 10, 25)
USUAL_LS = (1, 2)
SEED = 0
"""Nothing is planted or sent, so nothing must be secret: the same table gives the same page."""


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
    """Of the target: 1, which asks for nothing, and 2 if nothing is said."""
    priorities: Mapping[str, str | float] = field(default_factory=dict)
    """As PrepareOptions has them; they win over those of the roles file, column by column."""
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
            raise TableError("there is no target that l could be asked of")
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
