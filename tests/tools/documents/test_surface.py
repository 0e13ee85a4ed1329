"""Pages use the public surface, name all of it, and their Python is typed as it says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import verix_anon
from tools.documents.markdown import ROOT, blocks, pages
from tools.documents.notebooks import notebooks

# Researchers write providers, which takes the protocol and the engine; readers check a public log.
INNER = {"docs/how-to/research.md", "docs/how-to/publish-every-month.md"}
# Functions in pages are sketches without types; what they call is checked all the same.
LENIENT = "# mypy: check-untyped-defs, allow-untyped-defs, allow-untyped-calls"


def python(path: Path) -> str:
    """The Python of a page or a notebook, which shares one namespace."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    found = blocks(path.read_text(encoding="utf-8"))
    return "\n".join(block.text for block in found if block.language == "python")


WITH_PYTHON = [path for path in pages() if "import verix_anon" in python(path)]


def test_the_page_of_the_api_names_the_public_surface() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: verix_anon\.(\w+)", text, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == set(verix_anon.__all__) - {"__version__"}


@pytest.mark.parametrize("path", [*WITH_PYTHON, *notebooks()], ids=lambda path: path.name)
def test_pages_import_from_the_surface_alone(path: Path) -> None:
    if path.relative_to(ROOT).as_posix() in INNER:
        return
    assert not re.findall(r"^ *(?:from|import) verix_anon\.", python(path), re.MULTILINE)
    used = set(re.findall(r"\bverix_anon\.(\w+)", python(path)))
    assert used <= set(verix_anon.__all__)


@pytest.mark.long
def test_the_python_of_pages_has_the_types_it_says(tmp_path: Path) -> None:
    """Users who check their types copy from here."""
    assert len(WITH_PYTHON) > 5
    for path in WITH_PYTHON:
        name = f"{path.stem.replace('-', '_')}_page.py"
        (tmp_path / name).write_text(f"{LENIENT}\n{python(path)}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, tmp_path.glob("*.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
