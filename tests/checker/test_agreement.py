"""The checker in JavaScript and our command answer alike, also when files were spoilt."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from checker.asking import (
    Question,
    by_command,
    by_functions,
    by_node,
    by_page,
    many,
    questions,
)
from tools.browser import chromium, needs_chromium
from tools.kit.checker_cases import EXITS
from verix_anon.checker import write_page

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
EXPECTED = [(question, EXITS[kind]) for question, kind in questions()]


def differing(
    asked: Sequence[Question], one: Sequence[object], other: Sequence[object]
) -> list[tuple[Question, object, object]]:
    return [found for found in zip(asked, one, other, strict=True) if found[1] != found[2]]


def test_every_kind_of_question_is_asked() -> None:
    assert {(q.words[0], code) for q, code in EXPECTED} >= {
        (group, code) for group in ("prove", "receipt", "series") for code in (0, 1, 2)
    }


def test_the_command_tells_them_apart(tmp_path: Path) -> None:
    asked = [q for q, _ in EXPECTED]
    found = [by_command(question, tmp_path) for question in asked]
    assert differing(asked, found, [code for _, code in EXPECTED]) == []


@needs_node
def test_node_tells_them_apart() -> None:
    asked = [q for q, _ in EXPECTED]
    assert differing(asked, by_node(asked), [code for _, code in EXPECTED]) == []


@needs_node
def test_both_answer_spoilt_questions_alike(tmp_path: Path) -> None:
    asked = many(200, seed=35)
    found = [by_command(question, tmp_path) for question in asked]
    assert differing(asked, found, by_node(asked)) == []
    assert {0, 1} <= set(found)


@pytest.mark.long
@needs_chromium
def test_the_page_answers_six_thousand_spoilt_questions_as_the_command(tmp_path: Path) -> None:
    asked = [*many(4000, seed=7), *many(2000, seed=8, group="series")]
    with chromium() as browser:
        page = browser.new_page()
        page.goto(write_page(tmp_path / "page").as_uri())
        answers = [a for i in range(0, len(asked), 500) for a in by_page(page, asked[i : i + 500])]
    found = [by_functions(question, tmp_path) for question in asked]
    assert differing(asked, found, answers) == []
    assert {0, 1} <= set(found)


@needs_chromium
def test_the_page_tells_the_cases_apart(tmp_path: Path) -> None:
    asked = [q for q, _ in EXPECTED]
    with chromium() as browser:
        page = browser.new_page()
        page.goto(write_page(tmp_path / "page").as_uri())
        assert differing(asked, by_page(page, asked), [code for _, code in EXPECTED]) == []
