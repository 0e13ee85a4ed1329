"""Quotes in pieces of any size: the same as if each byte is looked at."""

import random

import pytest

from verix_anon.files.tables import text_loading
from verix_anon.files.tables.text_loading import Quotes


def plainly(text: str) -> tuple[bool, bool]:
    """Whether a comma or the end of a line stands beside each quote, and whether one is open."""
    is_inside, fits = False, True
    for at, character in enumerate(text):
        if character == '"':
            beside = text[at + 1 : at + 2] if is_inside else text[at - 1 : at] if at else ""
            fits = fits and beside in ("", ",", "\n", '"')
            is_inside = not is_inside
    return fits, is_inside


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_quotes_in_any_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_loading, "PIECE", size)
    draw = random.Random(size)
    seen = set()
    for _ in range(2000):
        text = "".join(draw.choices(['"', "a", ",", "\n", '",', ',"', '"a"'], k=draw.randrange(8)))
        found = Quotes.of(text.encode(), '"')
        seen.add(plainly(text))
        assert (found.fit(b","), found.is_inside) == plainly(text), text
    assert len(seen) == 4
