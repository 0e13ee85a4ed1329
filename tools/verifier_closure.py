"""What has to be read to trust `verify`: the modules that Python loads for it, and their lines.

Run it to see the table: `python -m tools.verifier_closure`, with `--write` to put the lines into
docs/architecture.md. The architecture test holds the sum, and the list in that page.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import verix_anon

SOURCE = Path(verix_anon.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
ENTRY = re.compile(r"^\| `(verix_anon[a-z_.]*)` \| ([\d,]+) \|", re.MULTILINE)
"""A module and its lines, as the page lists them."""
VERIFY = """
import sys
from verix_anon import verify

job = sys.argv[1]
verdict = verify(f"{job}/delivery", f"{job}/manifest.verix", submission=f"{job}/submission")
assert verdict, verdict
verdict = verify(f"{job}/delivery", f"{job}/manifest.verix")
assert verdict, verdict
print(*(name for name in sys.modules if name.split(".")[0] == "verix_anon"))
"""


def loaded_by_verify() -> dict[str, int]:
    """The lines of each module that a new process has loaded after a full and a thin `verify`."""
    with tempfile.TemporaryDirectory() as folder:
        _write_job(Path(folder))
        command = [sys.executable, "-c", VERIFY, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: len(_file(name).read_text("utf-8").splitlines()) for name in done.stdout.split()}


def listed_in_docs() -> dict[str, int]:
    """The modules that docs/architecture.md lists, in reading order, with their lines."""
    found = ENTRY.findall(PAGE.read_text("utf-8"))
    return {name: int(lines.replace(",", "")) for name, lines in found}


def write_lines(loaded: dict[str, int]) -> None:
    """Put the lines of each module, and their sum, into docs/architecture.md."""
    text = ENTRY.sub(lambda m: f"| `{m[1]}` | {loaded[m[1]]:,} |", PAGE.read_text("utf-8"))
    total = f"In total {sum(loaded.values()):,} lines in {len(loaded)} modules."
    PAGE.write_text(re.sub(r"In total [\d,]+ lines in \d+ modules\.", total, text), "utf-8")


def _write_job(folder: Path) -> None:
    prepared = verix_anon.prepare(verix_anon.datasets.census(300), target="income", quasi="all")
    verix_anon.write_submission(prepared.submission, folder / "submission")
    verix_anon.write_manifest(prepared.manifest, folder / "manifest.verix")
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verix_anon.write_delivery(delivery, folder / "delivery")


def _file(name: str) -> Path:
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    loaded = loaded_by_verify()
    for name, lines in sorted(loaded.items()):
        print(f"{lines:6,}  {name}")
    print(f"{sum(loaded.values()):6,}  in {len(loaded)} modules")
    if "--write" in sys.argv[1:]:
        write_lines(loaded)
