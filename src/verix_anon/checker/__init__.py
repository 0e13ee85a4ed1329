"""check.html: one file with which anybody checks proofs, receipts, verdicts and logs in a browser.

check.js      what is checked; written from docs/spec.md alone, in a language of its own
words.js      puts its answers in words: the section [check] of each catalogue in texts/
page.html, page.css, page.js   the page around it, in the design of all our pages
checker.mjs   the same for a terminal, for node

The page loads nothing: its policy allows its own script and style by their digests, and no
network.
"""

import hashlib
import json
from base64 import b64encode
from pathlib import Path

from verix_anon import __version__
from verix_anon.errors import TableError
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.translation import LANGUAGES, RECORD, keys, texts

__all__ = ["CHECKER", "PAGE", "page", "write_page"]

PAGE = "check.html"
_HERE = Path(__file__).parent
CHECKER = _HERE / "checker.mjs"
"""The program for node"""


def page() -> str:
    """Return check.html."""
    catalogue = {
        each: {code: texts(each)[f"check.{code}"] for code in keys("check")}
        | {"language": texts(each)["form.language"]}
        for each in LANGUAGES
    }
    # No text can end the script that holds it.
    written = json.dumps(catalogue, ensure_ascii=False).replace("<", "\\u003c")
    script = "".join(map(_read, ("check.js", "words.js", "page.js")))
    script = script.replace("{catalogue}", written)
    style = _read("../design/design.css") + _read("page.css")
    policy = (
        f"default-src 'none'; script-src '{_source(script)}'; style-src '{_source(style)}';"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "version": __version__, "style": style}
    parts["title"] = catalogue[RECORD]["page-title"]
    parts["needs"] = "".join(
        f'<p lang="{each}">{words["page-needs-script"]}</p>' for each, words in catalogue.items()
    )
    made = _read("page.html")
    for name, part in (parts | {"script": script}).items():
        made = made.replace(f"{{{name}}}", part)
    return made


def write_page(beside: Path, *, overwrite: bool = False) -> Path:
    """Write check.html into the folder of a file, and return its place.

    Raises:
        TableError: There is another check.html, or the file itself has that name.
    """
    place, data = beside.with_name(PAGE), page().encode()
    if beside.name == PAGE:
        raise TableError(f"{PAGE} is the name of the page; choose another name for the file")
    if not (place.is_file() and place.read_bytes() == data):
        with written_aside(place, overwrite=overwrite, folder=False, private=False) as aside:
            write_bytes(aside, data)
    return place


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
