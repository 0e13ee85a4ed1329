"""The notebooks run from top to bottom, and are stored with what they print."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.data import NAMES, load
from tools.documents.notebooks import FOLDER, as_page, execute, notebooks
from verix_anon.errors import TableError

pytestmark = pytest.mark.long


def printed(notebook: Any) -> str:
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    texts = [output.get("text", "") for cell in cells for output in cell["outputs"]]
    return "".join("".join(text) for text in texts)


def refuse(url: str) -> bytes:
    raise TableError(f"tests need no network, so {url} is not fetched")


def run(name: str, folder: Path) -> str:
    pytest.importorskip("nbclient", reason="the extra `docs` is not installed")
    pytest.importorskip("ipykernel", reason="the extra `docs` is not installed")
    return printed(execute(FOLDER / name, folder))


def test_owner(tmp_path: Path) -> None:
    text = run("owner.ipynb", tmp_path)
    assert "honest: VERIFIED" in text
    assert "lazy: VIOLATION" in text
    assert "refused: the verdict is VIOLATION" in text


def test_paper(tmp_path: Path) -> None:
    for name in NAMES:
        try:
            load(name, fetch=refuse)
        except TableError as error:
            pytest.skip(f"the public table is not at hand: {error}")
    text = run("paper.ipynb", tmp_path)
    assert "of 28 scenarios:" in text
    assert text.split("the verdict")[-1].split() == ["28"]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.name)
def test_stored_with_output(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    assert not [o for cell in code for o in cell["outputs"] if o["output_type"] == "error"]
    assert "```text\n" in as_page(path)
