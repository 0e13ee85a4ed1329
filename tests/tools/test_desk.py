"""The pictures of the desk: each is there, small, and shown with words for who cannot see it."""

import re
from pathlib import Path

from PIL import Image

from tools.desk import MOST_BYTES, NARROW, PICTURES, WIDTH

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_has_a_picture_that_is_shown() -> None:
    text = (DOCS / "how-to" / "desk.md").read_text()
    shown = dict(re.findall(r"!\[(.{20,})\]\(\.\./images/desk-([\w-]+)\.png\)", text))
    widths = dict.fromkeys(PICTURES, WIDTH) | {f"{name}-narrow": NARROW for name in PICTURES}
    assert set(shown.values()) == set(widths)
    assert {path.stem for path in (DOCS / "images").glob("desk-*")} == {
        f"desk-{name}" for name in widths
    }
    for name, width in widths.items():
        path = DOCS / "images" / f"desk-{name}.png"
        assert path.stat().st_size <= MOST_BYTES
        with Image.open(path) as picture:
            assert picture.width == width
