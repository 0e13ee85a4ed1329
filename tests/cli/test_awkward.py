"""Tables as programs leave them, from init to a release; nothing is edited but the roles."""

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as driver
import pytest

from cli.awkward.people import Awkward
from cli.awkward.programs import PROGRAMS, of_postgresql
from cli.awkward.published import holds, same
from cli.awkward.texts import TEXTS
from cli.jobs import Run
from cluster import running, url
from verix_anon.client.table.roles_file import read_roles

ROLES, K = Path("roles.toml"), 5
SOME = 3
"""Every so many-th table is quick enough for every change; the others are long."""


def edited(draft: str, table: Awkward) -> str:
    """The draft as the owner leaves it."""
    for line in table.answers:
        assert f"# {line}\n" in draft, draft
        draft = draft.replace(f"# {line}\n", f"{line}\n")
    for name, role in table.roles.items():
        draft = re.sub(rf'^"{name}" = "\w+"', f'"{name}" = "{role}"', draft, flags=re.M)
    if table.person and f'\nperson = "{table.person}"' not in draft:
        draft = re.sub(r"^# person = .*$", f'person = "{table.person}"', draft, flags=re.M)
    return f"{draft}\n{table.added}"


def left(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.iterdir() if path.is_file()}


def released(run: Run, table: Awkward) -> list[dict[str, str]]:
    """The rows of the release, by the commands as their owner types them."""
    code, _, err = run("init", table.name, *table.options, "--out", ROLES)
    assert code == 0, err
    for said in table.said:
        assert said in err
    ROLES.write_text(edited(ROLES.read_text(), table))
    given = ("--manifest", "job/manifest.verix")
    of_release = ("--verdict", "v.json", "--table", table.name, "--out", "released.csv")
    judged = ("--submission", "job/submission", "--skip", "fingerprint,utility", "--out", "v.json")
    for command in (
        ("prepare", table.name, "--roles", ROLES, "--out", "job", "--quiet"),
        ("anonymize", "job/submission", "--out", "job/delivery"),
        ("verify", "job/delivery", *given, *judged),
        ("release", "job/delivery", *given, *of_release, "--form", "plain", "--keep-order"),
    ):
        code, _, err = run(*command)
        assert code == 0, (command[0], err, ROLES.read_text())
    with Path("released.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rounded_down(value: Any, width: Any) -> Any:
    """What is left of an exact amount of money, as `init` drafts it."""
    return None if value is None else value // width * width


def check(table: Awkward, rows: list[dict[str, str]]) -> None:
    """What is published is true, says something, and leaves nobody alone."""
    declared, n_narrowed = read_roles(ROLES)[1], 0
    quasi = declared.quasi
    for name, values in table.true.items():
        assert len(rows) == len(values)
        if name not in rows[0]:
            continue  # It names people.
        if (made := declared.derived.get(name)) is not None:
            values = [rounded_down(value, made["width"]) for value in values]
        cells = [row[name] for row in rows]
        order = declared.orders.get(name, ())
        wrong = [
            (cell, value)
            for cell, value in zip(cells, values, strict=True)
            if not (holds(cell, value, order) if name in quasi else same(cell, value))
        ]
        assert not wrong, (name, wrong[:3])
        n_narrowed += name in quasi and any(not holds(cells[0], value, order) for value in values)
    assert n_narrowed
    classes = defaultdict(set)
    persons = table.persons or range(len(rows))
    for row, person in zip(rows, persons, strict=True):
        classes[tuple(row[name] for name in quasi)].add(person)
    assert min(map(len, classes.values())) >= K


TABLES = [
    pytest.param(table, id=table.name, marks=pytest.mark.long if i % SOME else ())
    for i, table in enumerate([*TEXTS, *PROGRAMS])
]


@pytest.mark.parametrize("table", TABLES)
def test_from_init_to_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, table: Awkward
) -> None:
    monkeypatch.chdir(tmp_path)
    table.make()
    before = left(tmp_path)
    check(table, released(run, table))
    assert left(tmp_path).items() >= before.items()


def test_from_a_database_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    with running() as folder:
        with driver.connect(url(folder)) as connection, connection.cursor() as cursor:
            table = of_postgresql(url(folder), cursor.execute)
            table.make()
            connection.commit()
        check(table, released(run, table))
