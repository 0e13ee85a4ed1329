"""Make the README's picture: `make screenshot`.

The provider splits at random columns of a sample (the adversary `approximate`) and hashes
everything correctly; the picture is the top of the report that the owner gets.
"""

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tools.browser import chromium
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client.prepare import prepare
from verix_anon.client.report import render
from verix_anon.client.verify import verify
from verix_anon.datasets import census

WIDTH, MARGIN = 1040, 24
MOST_BYTES = 200_000


def html() -> str:
    prepared = prepare(census(20_000), target="income", quasi="all", k=5)
    delivery = ADVERSARIES["approximate"](0).anonymize(prepared.submission)
    return render(verify(delivery, prepared.manifest, submission=prepared.submission))


def main(out: Path) -> None:
    """The verdict and the failing layer, one above the other."""
    with TemporaryDirectory() as scratch, chromium() as browser:
        path = Path(scratch) / "report.html"
        path.write_text(html(), encoding="utf-8")
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        page.goto(path.as_uri())
        shots = [
            Image.open(io.BytesIO(page.locator(selector).first.screenshot()))
            for selector in ("header.head", "article.fail")
        ]
    height = sum(shot.height for shot in shots) + MARGIN * (len(shots) + 1)
    picture = Image.new("RGB", (shots[0].width + 2 * MARGIN, height), "#f6f8fa")
    at = MARGIN
    for shot in shots:
        picture.paste(shot, (MARGIN, at))
        at += shot.height + MARGIN
    out.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(128).save(out, optimize=True)
    size = out.stat().st_size
    assert size <= MOST_BYTES, size
    print(f"{out}: {picture.width} x {picture.height}, {size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
