"""Make the pictures of check.html for the guides of third parties: `make pictures`.

The files are those of the kit's cases, so that the pictures are the same whenever they are made.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.browser import chromium
from tools.kit.checker_cases import checker_cases
from verix_anon.checker import write_page

SHOWN = {
    "check-subject": (
        {"proof-clear": {"proof": "proof.json"}},
        True,
    ),
    "check-regulator": (
        {
            "signed-verdict": {
                "receipt": "receipt.dsse.json",
                "key": "provider.key.pub",
                "verdict": "signed.dsse.json",
                "owner": "owner.key.pub",
            }
        },
        False,
    ),
    "check-released": (
        {"series-file": {"log": "series.json", "file": "released.csv"}},
        False,
    ),
}
"""By picture: the cases whose files are dropped, under which names, and whether a root is typed."""


def main(folder: Path) -> None:
    """Drop the files, and take a picture of what the page says."""
    found = {case.id: case for case in checker_cases()}
    with TemporaryDirectory() as scratch, chromium() as browser:
        place = write_page(Path(scratch) / "x")
        for name, (cases, has_root) in SHOWN.items():
            page = browser.new_page(
                viewport={"width": 780, "height": 600}, color_scheme="light", locale="en"
            )
            page.goto(place.as_uri())
            for case, names in cases.items():
                for each, to in names.items():
                    (Path(scratch) / to).write_bytes(found[case].files[each])
                page.set_input_files("#files", [Path(scratch) / to for to in names.values()])
                if has_root:
                    words = found[case].words
                    page.click("#more summary")
                    page.fill("#root", words[words.index("--root") + 1])
            page.wait_for_selector("article .outcome:not(:empty)")
            page.wait_for_selector("article.yes")
            page.locator("main").screenshot(path=folder / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
