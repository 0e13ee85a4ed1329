"""The pictures of the desk: each is there, small, and shown with words for who cannot see it."""

import re
from pathlib import Path

from PIL import Image

from tools.desk import LANGUAGES, LOOKS, MOST_BYTES, MOST_BYTES_OF_ALL, PICTURES, gallery

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_has_pictures_that_are_shown_and_small() -> None:
    page = (DOCS / "how-to" / "desk-pictures.md").read_text()
    assert page == "\n".join([*gallery(), ""])
    shown = re.findall(r"!\[.{20,}?\]\(\.\./images/desk-([\w-]+)\.png\)", page)
    widths = {
        f"{name}{language}{look.ending}": look.width
        for name in PICTURES
        for language, _ in LANGUAGES.values()
        for look in LOOKS
    }
    assert sorted(shown) == sorted(widths)
    paths = {path.stem.removeprefix("desk-"): path for path in (DOCS / "images").glob("desk-*")}
    assert set(paths) == set(widths)
    for name, width in widths.items():
        assert paths[name].stat().st_size <= MOST_BYTES
        with Image.open(paths[name]) as picture:
            assert picture.width == width
    assert sum(path.stat().st_size for path in paths.values()) <= MOST_BYTES_OF_ALL


def test_the_guide_says_what_its_pictures_show() -> None:
    text = (DOCS / "how-to" / "desk.md").read_text()
    shown = dict(re.findall(r"!\[(.{20,})\]\(\.\./images/desk-([\w-]+)\.png\)", text))
    assert {*PICTURES} - {"groups", "prepare", "series"} <= set(shown.values())
