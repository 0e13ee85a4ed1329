"""Make what is made: `python -m documents reference | notebooks | site`."""

import sys
import tempfile
from pathlib import Path

from documents import notebooks, reference, site
from documents.markdown import ROOT

CLI_PAGE = ROOT / "docs" / "reference" / "cli.md"


def main(wanted: str) -> None:
    if wanted == "reference":
        CLI_PAGE.write_text(reference.cli_page(), encoding="utf-8")
    elif wanted == "notebooks":
        for path in notebooks.notebooks():
            with tempfile.TemporaryDirectory() as folder:
                notebooks.store(path, Path(folder))
    elif wanted == "site":
        done = site.build(ROOT)
        print(done.stdout, end="")
        if done.returncode:
            sys.exit(done.returncode)
        print(f"The site is in {ROOT / site.SITE}; open its index.html.")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
