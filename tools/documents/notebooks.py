"""The notebooks: run them, and show them as pages of the site."""

import json
import os
from pathlib import Path
from typing import Any

from tools.documents.markdown import ROOT

FOLDER = ROOT / "docs" / "notebooks"
SECONDS = 300


def notebooks() -> list[Path]:
    """The stored notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook from top to bottom in a folder; an error in a cell raises."""
    import nbformat
    from nbclient import NotebookClient

    # What jupyter would otherwise look for and store is not ours to touch.
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    # The notebooks of a clone may use its studies, wherever they are run.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    client.execute(env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)})
    return notebook


def store(path: Path, folder: Path) -> None:
    """Run a notebook and store what it printed, without what differs from run to run by itself."""
    import nbformat

    notebook = execute(path, folder)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)


def as_page(path: Path) -> str:
    """A notebook as Markdown: its text, its code, and the text it printed."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    outputs = [_text(output) for output in cell["outputs"]]
    return [
        f"```python\n{source}\n```",
        *(f"```text\n{text.rstrip()}\n```" for text in outputs if text.strip()),
    ]


def _text(output: dict[str, Any]) -> str:
    shown = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "".join(shown)
