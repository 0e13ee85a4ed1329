"""explore(): what it says of a setting is what a release of it is measured to be."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import verix_anon
from verix_anon.client.explore import SEED, Judge
from verix_anon.client.ledger import Ledger
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.report import render_exploration
from verix_anon.client.table.task import Labels, Task
from verix_anon.datasets import census
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.protocol.messages import Delivery, Submission

pytestmark = pytest.mark.usefixtures("quick_models")
ROLES = {"target": "income", "quasi": "all"}


class Recording:
    """The local provider, and what it was asked for."""

    def __init__(self) -> None:
        self.submissions: list[Submission] = []

    def anonymize(self, submission: Submission) -> Delivery:
        self.submissions.append(submission)
        return verix_anon.LocalProvider().anonymize(submission)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return census(1_200)


def found(
    table: object, roles: object = None, **options: object
) -> tuple[verix_anon.Exploration, Recording]:
    provider = Recording()
    wanted = verix_anon.ExploreOptions(**options)  # type: ignore[arg-type]
    given = ROLES if roles is None else roles
    explored = verix_anon.explore(table, given, provider=provider, options=wanted)  # type: ignore[arg-type]
    return explored, provider


@pytest.mark.parametrize("rule", ["importance-spread", "variance-reduction"])
def test_a_row_is_what_the_release_is_measured_to_be(table: pa.Table, rule: str) -> None:
    explored, _ = found(table, k=[4, 9], rule=[rule], l=[1, 2])
    for row in explored.rows:
        options = verix_anon.PrepareOptions(rule=rule, traps="none", witnesses=0, unsafe_seed=SEED)
        prepared = verix_anon.prepare(table, **ROLES, k=row.k, options=options)  # type: ignore[arg-type]
        delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
        verdict = verix_anon.verify(
            delivery,
            prepared.manifest,
            submission=prepared.submission,
            skip=("fingerprint", "utility"),
        )
        sheet = verix_anon.release(
            delivery,
            prepared.manifest,
            verdict,
            table=table,
            options=verix_anon.ReleaseOptions(l=row.l, force=True),
        ).sheet
        measured = (row.k_reached, row.classes, row.prosecutor_max, row.prosecutor_mean)
        assert measured == (sheet.k, sheet.n_classes, sheet.prosecutor_max, sheet.prosecutor_mean)
        assert row.ncp == pytest.approx(sheet.ncp)
        assert row.losses == sheet.losses
        assert row.same_target == sheet.same_target
        assert row.l == 1 or row.same_target == 0


def test_nothing_is_planted_kept_or_counted(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    explored, provider = found(table)
    assert [(r.k, r.l) for r in explored.rows] == [(k, l) for k in (2, 5, 10, 25) for l in (1, 2)]  # noqa: E741
    # One tree for both l, of the genuine records alone, without a name or a label.
    assert [s.contract.k for s in provider.submissions] == [2, 5, 10, 25]
    assert {s.records.n_rows for s in provider.submissions} == {table.num_rows}
    assert not any(s.records.target.any() for s in provider.submissions)
    assert list(tmp_path.iterdir()) == []
    assert not Ledger.default().path.exists()
    assert found(table)[0] == explored


def test_the_setting_of_the_roles_file_is_among_them(table: pa.Table, tmp_path: Path) -> None:
    roles = tmp_path / "roles.toml"
    columns = [f'"{name}" = "quasi"' for name in table.column_names if name != "income"]
    text = ["k = 7", 'target = "income"', "[columns]", *columns]
    contract = ["[contract]", 'rule = "variance-reduction"', "[diversity]", "income = { l = 2 }"]
    roles.write_text("\n".join([*text, *contract]))
    explored, _ = found(table, roles)
    assert sorted({row.k for row in explored.rows}) == [2, 5, 7, 10, 25]
    assert explored.chosen is not None
    assert (explored.chosen.k, explored.chosen.l) == (7, 2)
    assert {row.rule for row in explored.rows} == {"variance-reduction"}
    # What is asked for is tried as asked.
    explored, _ = found(table, roles, k=[3])
    assert {row.k for row in explored.rows} == {3}
    assert explored.chosen is None


def test_priorities_weigh_the_columns_of_the_rule_that_has_weights(
    table: pa.Table, tmp_path: Path
) -> None:
    roles = tmp_path / "roles.toml"
    columns = [f'"{name}" = "quasi"' for name in table.column_names if name != "income"]
    own = ["[priorities]", 'age = "fine"', 'sex = "coarse"']
    roles.write_text("\n".join(['target = "income"', "[columns]", *columns, *own]))

    def weighed(**given: object) -> list[float]:
        _, provider = found(table, roles, k=[5], l=[1], **given)
        shares = [
            c.weight * ((c.size or 1) - 1)
            for c in provider.submissions[0].contract.quasi
            if c.weight
        ]
        return [share / 2**50 for share in shares[:3]]

    assert table.column_names[:3] == ["age", "birth_date", "sex"]
    assert weighed() == pytest.approx([4, 1, 0.25])
    assert weighed(priorities={"sex": 2}) == pytest.approx([4, 1, 2])
    assert weighed(rule=["variance-reduction"]) == []


def test_what_cannot_be_reached_is_left_out_with_the_reason(table: pa.Table) -> None:
    explored, provider = found(table, k=[5, 5_000], l=[1, 3])
    assert [(row.k, row.l) for row in explored.rows] == [(5, 1)]
    few = "the table holds 1,200 people, fewer than k = 5,000; choose a smaller k"
    none = "column 'income' has 2 values in the whole table, so that no class has 3; ask for a"
    assert [reason.split(": ")[1] for reason in explored.left_out] == [
        f"{none} smaller l",
        few,
        few,
    ]
    assert len(provider.submissions) == 1
    with pytest.raises(NotAcceptedError, match="no setting can be reached: k 5,000"):
        found(table, k=[5_000])


@pytest.mark.parametrize(
    ("roles", "scores"),
    [
        ({"target": "income"}, ["f1", "auc"]),
        ({"target": "education"}, ["macro_f1", "auc"]),
        ({"target": "age", "task": "quantity"}, ["r2", "mean_absolute_error"]),
        ({"task": "none"}, []),
    ],
)
def test_every_task_has_its_measures(
    table: pa.Table, roles: dict[str, str], scores: list[str]
) -> None:
    explored, _ = found(table, {"quasi": "all", **roles}, k=[5])
    assert all(list(row.scores) == scores for row in explored.rows)
    assert list(explored.raw) == scores
    assert len(explored.rows) == (2 if "target" in roles else 1)
    assert bool(explored.tested_on) == bool(scores)
    told = json.loads(explored.to_json())
    assert [row["ncp"] for row in told["rows"]] == [row.ncp for row in explored.rows]
    assert all(len(cells) == len(explored.head) for cells in explored.cells())


def test_without_anything_made_coarser_a_model_is_worth_what_a_raw_one_is() -> None:
    generator = np.random.default_rng(1)
    values = generator.integers(0, 9, (3, 800)).astype(np.float64)
    values[1, ::7] = np.nan
    labels = Labels(
        task=Task.CLASSES, values=(values[0] > 4).astype(np.float64), classes=("no", "yes")
    )
    judge = Judge.of(values, labels)
    assert judge.score(Grouped.by(np.arange(800), 800)) == judge.raw()
    assert judge.raw()["auc"] > 0.99
    # All in one class tell a model nothing.
    assert judge.score(Grouped.by(np.zeros(800, np.int64), 1))["auc"] == 0.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": [1]}, "k must be 2 or more"),
        ({"k": []}, "k must name at least one"),
        ({"l": [0]}, "l must be 1 or more"),
        ({"rule": ["magic"]}, "rules are variance-reduction, importance-spread, not 'magic'"),
    ],
)
def test_mistakes_are_said(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        verix_anon.ExploreOptions(**options)  # type: ignore[arg-type]


def test_roles_that_are_none_are_said(table: pa.Table) -> None:
    with pytest.raises(TableError, match="there is no role 'aim'"):
        found(table, {"aim": "income"})
    with pytest.raises(TableError, match="roles must be the file"):
        found(table, 5)
    with pytest.raises(TableError, match="no target, so leave out l"):
        found(table, {"quasi": "all", "task": "none"}, l=[2])


def test_the_page_stands_alone_and_text_stays_text(table: pa.Table) -> None:
    explored, _ = found(table, k=[5, 10], rule=["importance-spread", "variance-reduction"])
    assert {cells[1] for cells in explored.cells()} == {"importance-spread", "variance-reduction"}
    hostile = "<script>alert(1)</script>"
    page = render_exploration(replace(explored, target=hostile, left_out=(hostile,)))
    assert hostile not in page
    assert "&lt;script&gt;" in page
    assert not [word for word in ("http:", "https:", "src=", "@import", "url(h") if word in page]
    n_bars = page.count('<svg class="bars"')
    assert n_bars > 0
    assert page.count("<svg") - n_bars == 5
    assert page.count('class="chosen"') == 1
    assert hostile not in replace(explored, left_out=(hostile,))._repr_html_()
    assert explored._repr_html_().count("→") == 1
