"""What was guessed of each table, beside the truth."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from experiments.data import DATASETS, load
from tools.documents.markdown import ROOT
from tools.guesses.own import OWN
from tools.guesses.truth import PUBLIC, Truth
from verix_anon.client.table.encode import kind_of
from verix_anon.client.table.guess import Guess, guess_roles

__all__ = ["PAGE", "RESULTS", "count_own", "page", "write"]

RESULTS = ROOT / "results" / "guesses.json"
PAGE = ROOT / "docs" / "reference" / "guesses.md"

Counted = dict[str, Any]
Compared = Sequence[tuple[str, str | None, str | None]]


def count(name: str, table: pa.Table, truth: Truth) -> Counted:
    """How many columns were given the right role and kind, and what is wrong."""
    guesses = guess_roles(table)
    columns = guesses.columns
    roles = [(g.name, g.role.value, truth.role(g.name)) for g in columns]
    sent = [g for g in columns if g.role.value == truth.role(g.name) == "quasi"]
    kinds = [(g.name, _kind(g), _true_kind(g.name, table, truth)) for g in sent]
    said = [
        ("target", _name(guesses.target), truth.target),
        ("positive", guesses.positive, truth.positive),
        ("person", guesses.person if guesses.person != "record" else None, truth.person),
    ]
    return {
        "table": name,
        "columns": len(columns),
        "roles": _right(roles),
        "dropped": [n for n, found, true in roles if found == "identifier" != true],
        "leaked": [n for n, found, true in roles if true == "identifier" != found],
        "quasi": len(sent),
        "kinds": _right(kinds),
        "said": _right(said),
        "wrong": [*_wrong(roles), *_wrong(kinds), *_wrong(said)],
    }


def _name(guess: Guess | None) -> str | None:
    return None if guess is None else guess.name


def _kind(guess: Guess) -> str:
    drafted = guess.hierarchy if guess.hierarchy and guess.is_hierarchy_likely else ""
    return f"{guess.kind} {drafted}".strip()


def _true_kind(name: str, table: pa.Table, truth: Truth) -> str:
    kind = truth.kinds.get(name) or kind_of(table.schema.field(name).type)
    return f"{kind} {truth.hierarchies.get(name, '')}".strip()


def _right(compared: Compared) -> int:
    return sum(found == true for _, found, true in compared)


def _wrong(compared: Compared) -> list[str]:
    return [f"{n}: {found}, not {true}" for n, found, true in compared if found != true]


def count_own() -> Iterator[Counted]:
    """Of the tables made here."""
    for name, make in OWN.items():
        yield count(name, *make())


def count_public() -> Iterator[Counted]:
    """Of the public tables."""
    for name, truth in PUBLIC.items():
        kinds = dict.fromkeys(DATASETS[name].nominal, "categorical")
        yield count(DATASETS[name].title, load(name), truth.with_kinds(kinds))


def write(results: Path = RESULTS) -> str:
    """Count all tables, and write what was found; the page is made of that."""
    found = [*count_public(), *count_own()]
    results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")
    return page(found)


HEAD = """<!-- Made by `python -m tools.guesses`; do not edit. -->
# What `init` guesses right

`verix-anon init` guesses a role for every column, its kind, and a hierarchy if one is likely.
`init --explain` says why. For twelve tables we wrote down the right answers by hand, before we saw
any guess, and compared the guesses with them. Seven are the public tables of the *VeriX-Anon*
paper. Five are made by code, as a hospital, a firm, a bank and a survey may have them. The last
one, `hospital export`, is the table of `python -m tools.hospital`. It was made to try rules that
we knew: for free text, lists in a cell, codes of ICD-10 and coded sex.

The counts are better than they would be on other tables. The same people wrote the answers, the
rules and the five tables. They wrote the rules after the answers, knew the names of all these
columns, and put some words from them into the rules: `nbr`, `resp`, `attrition`, `verstorben`. In
the public tables the target is always called `target`. The rules know names in English and German
only. After the first count we changed three things for the sake of other tables. A column with two
values is not taken for free text. A column of floats is not taken for row numbers. Codes are
matched in another way. The counts stayed the same. We left the mistakes below as they are.

- *dropped by mistake*: columns that are not identifiers and were guessed to be. Such a column is
  lost, and `prepare` says which columns are dropped.
- *missed*: identifiers that were guessed to be something else. They would be sent or published.
- *right kind*: counted for the quasi-identifiers that were guessed to be quasi-identifiers.
- *target and person*: whether the target, its class 1 and the column of persons are right.

| table | columns | right role | dropped by mistake | missed | right kind | target and person |
| --- | --: | --: | --: | --: | --: | --: |
"""
WRONG = """
## What is wrong

In our answers, health and money are sensitive, and a column that others know is a
quasi-identifier. `init` sees only names and values. It cannot know that *metformin* is a drug, or
that 1, 2 and 3 are codes. So check every line of what it drafts. Each entry below names the guess
first and the right answer second.

`init` drops some sensitive columns on purpose, such as a column with a list of diagnoses in each
cell. If such a column is sensitive, its cells are published as they are, and nearly every list
belongs to one person only.
"""


def page(found: list[Counted]) -> str:
    """The page, of what was counted."""
    rows = [
        f"| {c['table']} | {c['columns']} | {c['roles']} | {len(c['dropped'])}"
        f" | {len(c['leaked'])} | {c['kinds']} of {c['quasi']} | {c['said']} of 3 |"
        for c in found
    ]
    wrong = [
        f"- **{c['table']}**: " + "; ".join(_grouped(c["wrong"])) + "." for c in found if c["wrong"]
    ]
    return HEAD + "\n".join(rows) + "\n" + WRONG + "\n" + "\n".join(wrong) + "\n"


def _grouped(wrong: list[str]) -> list[str]:
    """Columns with the same mistake, together."""
    by_mistake: dict[str, list[str]] = {}
    for one in wrong:
        name, mistake = one.split(": ", 1)
        by_mistake.setdefault(mistake, []).append(f"`{name}`")
    return [f"{', '.join(names)} {mistake}" for mistake, names in by_mistake.items()]
