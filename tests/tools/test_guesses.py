"""The page on guesses is that of the guesses of today."""

import json

import pytest

from experiments.data import load
from tools.guesses.count import PAGE, RESULTS, count_own, count_public, page
from verix_anon.errors import TableError

FOUND = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(FOUND)


def test_the_tables_made_here_are_guessed_as_before() -> None:
    own = list(count_own())
    assert own == FOUND[-len(own) :]


def test_the_public_tables_are_guessed_as_before() -> None:
    def unreachable(url: str) -> bytes:
        raise TableError(f"{url} is not fetched by tests")

    try:
        load("adult", fetch=unreachable)
    except TableError:
        pytest.skip("the public tables are not here")
    public = list(count_public())
    assert public == FOUND[: len(public)]


def test_nobody_is_named_by_what_is_sent() -> None:
    """An identifier that is missed is the worst guess."""
    assert not [name for found in FOUND for name in found["leaked"]]
