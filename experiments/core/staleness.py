"""Which results are of this version: `python -m experiments --status`.

A result is stale if the code that it depends on has changed since it was measured. For a study,
that is all code that it imports, directly or not, inside functions too. What writes its page and
draws its figures does not count: a test holds the pages to the results. A benchmark that starts
commands also depends on the code that these commands may load. Comments, docstrings, sentences such
as messages, and the layout of lines do not count. A result that was measured on uncommitted
changes, or on a commit that is not in the history, is stale.
"""

import ast
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from experiments.core.sources import ROOT

RESULTS = ROOT / "results"
HOMES = ROOT / "src" / "verix_anon" / "__init__.pyi"
"""Where each public name of the package comes from"""
BY_ITSELF = frozenset({"owner", "primitives", "reading"})
"""Benchmarks that start no command"""
OF_SOME = frozenset({"adversaries", "checker", "conform", "desk", "service"})
"""Packages that only commands about them load"""
WITH_ALL = frozenset({"chaos", "checker", "desk", "kit", "service"})
"""Benchmarks of commands that load one of these packages"""
OF_NO_STUDY = frozenset(
    {
        ROOT / "src" / "verix_anon" / "files" / "atomic_write.py",
        ROOT / "experiments" / "core" / "markdown.py",
    }
)
"""Names finished files, and lays out pages. A study rests on what is in them."""
SHOWING = frozenset({"render.py", "figures.py", "published.py"})
"""What shows the results of a study, and the paper's figures that stand beside them"""
PROGRAM = re.compile(r"tools\.bench\.(\w+)")
SENTENCE = 5
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStatus:
    """A file in results/, and how far the code has gone on since."""

    name: str
    commit: str
    age: int | None
    """Commits since then that touched a file that it depends on; None if that is not known"""
    changed: tuple[str, ...]
    """The files whose code is no longer what was measured, or another reason"""

    @property
    def is_stale(self) -> bool:
        """True if the result is not of this version."""
        return bool(self.changed)


def statuses(results: Path = RESULTS) -> list[ResultStatus]:
    """Return the status of every study and benchmark that names the commit it was measured on."""
    found = []
    for path in sorted(results.glob("*.json")):
        read = json.loads(path.read_text(encoding="utf-8"))
        files = sorted(file.relative_to(ROOT).as_posix() for file in _depends_on(path.stem))
        if files and isinstance(read, dict) and "commit" in read:
            found.append(_status(path.stem, str(read["commit"]), files))
    return found


def report(found: Iterable[ResultStatus]) -> str:
    """Return the statuses as lines of text, stale ones with the first files that changed."""
    lines = []
    for each in found:
        age = "" if each.age is None else f"{each.age} commits"
        state = "stale" if each.is_stale else "of this version"
        lines.append(f"{each.name:<18} {each.commit:<14} {age:>12}  {state}")
        lines += [f"    {reason}" for reason in each.changed[:MOST_SHOWN]]
        if len(each.changed) > MOST_SHOWN:
            lines.append(f"    and {len(each.changed) - MOST_SHOWN} more files")
    return "\n".join(lines)


def _status(name: str, commit: str, files: list[str]) -> ResultStatus:
    if _git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        reason = "it was measured on code that is not in the history"
        return ResultStatus(name=name, commit=commit, age=None, changed=(reason,))
    age = int(_git("rev-list", "--count", f"{commit}..HEAD", "--", *files) or 0)
    touched = (_git("diff", "--name-only", commit, "--", *files) or "").split()
    changed = tuple(path for path in touched if _differs(path, commit))
    return ResultStatus(name=name, commit=commit, age=age, changed=changed)


def _depends_on(name: str) -> set[Path]:
    """Return every file of this repository that a study or a benchmark depends on."""
    bench = name.removeprefix("bench-")
    tools = ROOT / "tools"
    if bench == name:
        study = ROOT / "experiments" / "studies" / name
        todo = sorted(path for path in study.rglob("*.py") if path.name not in SHOWING)
    else:
        todo = [tools / "bench" / f"{bench}.py", *(tools / bench).glob("*.py")]
        # A benchmark starts other modules as programs, by their dotted names.
        named = PROGRAM.findall("".join(p.read_text("utf-8") for p in todo if p.is_file()))
        todo += [tools / "bench" / f"{program}.py" for program in named]
    seen: set[Path] = set()
    while todo:
        path = todo.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            todo += _imports(path)
    if bench == name:
        seen -= OF_NO_STUDY
    elif bench not in BY_ITSELF:
        package = ROOT / "src" / "verix_anon"
        left_out = frozenset() if bench in WITH_ALL else OF_SOME
        seen.update(
            p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in left_out
        )
    return seen


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Return the files of this repository that a file imports, with their packages."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = list(_names(tree))
    homes = _homes()
    for node in ast.walk(tree):
        # `verix_anon.prepare` comes from a module that is loaded when the name is first used.
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "verix_anon":
            names += [homes[node.attr]] if node.attr in homes else []
    found: dict[Path, None] = {}
    for name in names:
        parts = name.split(".")
        base = ROOT / "src" if parts[0] == "verix_anon" else ROOT
        for n in range(1, len(parts) + 1):
            place = base.joinpath(*parts[:n])
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file():
                    found[file] = None
    return tuple(found)


@cache
def _homes() -> dict[str, str]:
    nodes = ast.parse(HOMES.read_text(encoding="utf-8")).body
    return {
        alias.name: f"verix_anon.{node.module or alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _differs(path: str, commit: str) -> bool:
    before = _git("show", f"{commit}:{path}")
    return before is None or _code(before) != _code((ROOT / path).read_text(encoding="utf-8"))


@cache
def _code(text: str) -> str:
    """Return what a source file does, as text: without comments, sentences and line breaks."""
    tree = _WithoutSentences().visit(ast.parse(text))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


class _WithoutSentences(ast.NodeTransformer):
    """Empties texts of `SENTENCE` words and more: people read them, and no result rests on them."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Empty a sentence."""
        return _emptied(node, node.value) if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """Empty a sentence with values in it."""
        words = [str(each.value) for each in node.values if isinstance(each, ast.Constant)]
        return _emptied(node, "".join(words))


def _emptied(node: ast.expr, text: str) -> ast.expr:
    return ast.Constant("") if len(text.split()) >= SENTENCE else node


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring, of a module, a class, a function or a name."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _git(*words: str) -> str | None:
    """Return what git prints, or None if it fails."""
    done = subprocess.run(  # noqa: S603
        ["git", *words],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else None
