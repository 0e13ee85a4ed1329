"""The code that a study's cells rest on: its own, and what that imports, and so on.

An import counts wherever it stands in a file. Packages on the way to a module do not, unless
something is imported from them: they hold what others use of them.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from experiments.core.provenance import PACKAGES

__all__ = ["ROOT", "code_digest", "sources"]

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = ("study.py", "job.py")
"""What of a study is run for a cell; the others only show what came out."""


@cache
def code_digest(study: str, root: Path = ROOT) -> str:
    """A digest of everything that can change the result of a study's cells."""
    digest = hashlib.sha256()
    for path in sorted(sources(study, root)):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(json.dumps({name: version(name) for name in PACKAGES}).encode())
    return digest.hexdigest()


def sources(study: str, root: Path = ROOT) -> set[Path]:
    """The files of this repository that are run for a study's cells."""
    folder = root / "experiments" / "studies" / study
    waiting, found = [folder / name for name in ENTRIES], set[Path]()
    while waiting:
        path = waiting.pop()
        if path.is_file() and path not in found:
            found.add(path)
            waiting += [file for name in _imported(path) for file in _files(name, root)]
    return found


def _imported(path: Path) -> Iterator[str]:
    """The dotted names that a file imports, or imports something from."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(name: str, root: Path) -> list[Path]:
    """Where a module of ours would be; nothing where the name is another's."""
    package, *_ = parts = name.split(".")
    homes = {"experiments": root, "tools": root, "verix_anon": root / "src"}
    if package not in homes:
        return []
    path = homes[package].joinpath(*parts)
    return [path.with_name(f"{path.name}.py"), path / "__init__.py"]
