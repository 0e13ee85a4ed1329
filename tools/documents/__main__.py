"""Make what is made: `python -m tools.documents reference | notebooks | site`."""

import sys
import tempfile
from pathlib import Path

from tools.documents import adversaries, http_api, notebooks, reference, site
from tools.documents.markdown import ROOT
from verix_anon import checker

REFERENCE = ROOT / "docs" / "reference"
MADE = {
    "cli.md": reference.cli_page,
    "adversaries.md": adversaries.adversaries_page,
    "http.md": http_api.http_page,
    "check.html": checker.page,
}
"""The pages that are made, not written."""


def main(wanted: str) -> None:
    if wanted == "reference":
        for name, page in MADE.items():
            (REFERENCE / name).write_text(page(), encoding="utf-8")
    elif wanted == "notebooks":
        for path in notebooks.notebooks():
            with tempfile.TemporaryDirectory() as folder:
                notebooks.store(path, Path(folder))
    elif wanted == "site":
        done = site.build(site.HERE)
        print(done.stdout, end="")
        if done.returncode:
            sys.exit(done.returncode)
        print(f"The site is in {site.HERE / site.SITE}; open its index.html.")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
