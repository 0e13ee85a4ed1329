"""The tree is the architecture: imports point down, and heavy things stay where they are used."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import verix_anon
from tools import stamps

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "verix_anon"

BELOW = {"errors", "arrays", "fields", "machine", "progress", "protocol"}
ALLOWED = {
    "errors": set[str](),
    "arrays": set[str](),
    "fields": {"errors"},
    "machine": {"errors"},
    "progress": set[str](),
    "listening": {"errors"},
    "protocol": {"errors", "arrays", "fields"},
    "kernels": {"arrays", "progress"},
    "files": {"errors", "arrays", "fields", "machine", "protocol"},
    "datasets": {"errors", "arrays"},
    "client": {"errors", "arrays", "fields", "machine", "progress", "protocol", "kernels", "files"},
    "provider": {
        "errors",
        "arrays",
        "fields",
        "machine",
        "progress",
        "protocol",
        "kernels",
        "files",
    },
    "service": {
        "errors",
        "fields",
        "listening",
        "machine",
        "progress",
        "protocol",
        "files",
        "provider",
    },
    # The desk shows what the client computes; long work is a command, which it only starts.
    "desk": {"errors", "fields", "listening", "machine", "progress", "protocol", "files", "client"},
    "adversaries": {"errors", "arrays", "protocol", "kernels", "provider"},
    "conform": {
        "errors",
        "arrays",
        "fields",
        "machine",
        "protocol",
        "files",
        "client",
        "adversaries",
    },
    "cli": {
        "errors",
        "fields",
        "machine",
        "progress",
        "protocol",
        "files",
        "datasets",
        "client",
        "provider",
        "service",
        "desk",
        "adversaries",
        "conform",
    },
}
# Optional packages, and the modules or folders that may import each.
EXTRAS: dict[str, str | tuple[str, ...]] = {
    "pyspark": "provider/spark/",
    "httpx2": "client/remote/connection.py",
    "alembic": "service/",
    "fastapi": ("desk/", "service/"),
    "limits": "service/",
    "prometheus_client": "service/",
    "psycopg": "service/",
    "pydantic": ("desk/", "service/"),
    "sqlalchemy": "service/",
    "starlette": ("desk/", "service/"),
    "structlog": "service/",
    "uvicorn": "listening.py",
    "jinja2": ("client/report/", "desk/", "service/"),
    "markupsafe": ("client/report/", "desk/", "service/"),
    "matplotlib": "client/report/",
    "python_calamine": "files/tables/sheets/",
    "xlsxwriter": "files/tables/sheets/",
    "pyreadstat": "files/tables/statistics/",
    "polars": "files/tables/statistics/",
    "adbc_driver_postgresql": "files/tables/postgresql.py",
}
# The protocol has no randomness, clock, network or files.
IMPURE = {"random", "secrets", "time", "socket", "urllib", "os", "pathlib", "io", "fsspec"}
VERBS = ("prepare", "verify", "release")
MAX_LINES, MAX_BODY, MAX_KERNEL, MAX_PARAMETERS = 400, 50, 80, 6

SOURCES = sorted(PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Full dotted names that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ids(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_imports_point_down(path: Path) -> None:
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "verix_anon" or (path.parent == PACKAGE and path.stem.startswith("__")):
            continue
        if parts[1] in ("__version__",) or parts[1] == package_of(path):
            continue
        assert parts[1] in ALLOWED[package_of(path)], f"{ids(path)} must not import {name}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "protocol").glob("*.py")), ids=ids)
def test_protocol_is_pure(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & IMPURE


def test_the_second_implementation_stands_alone() -> None:
    """It is what the engine is held to, so it shares nothing with it."""
    found = {name.split(".")[0] for name in imported(PACKAGE / "conform" / "independent.py")}
    assert found <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_optional_packages_stay_in_their_module(path: Path) -> None:
    for name in imported(path):
        home = EXTRAS.get(name.split(".")[0])
        assert home is None or ids(path).startswith(home)


@pytest.mark.parametrize("path", sorted((PACKAGE / "desk").rglob("*.py")), ids=ids)
def test_the_desk_computes_nothing(path: Path) -> None:
    """Pages are routes, forms and templates: tables and numbers are the client's."""
    own = sys.stdlib_module_names | {"verix_anon", "fastapi", "starlette", "jinja2"}
    assert {name.split(".")[0] for name in imported(path)} <= own


@pytest.mark.parametrize("folder", ["src", "experiments", "tools", "tests"])
def test_modules_are_small(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES, path


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_functions_are_short(path: Path) -> None:
    most = MAX_KERNEL if package_of(path) == "kernels" else MAX_BODY
    for function in functions(path):
        # Lines of code and comments; the docstring is not counted.
        body = function.body[1:] if ast.get_docstring(function) else function.body
        lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]
        assert lines <= most, f"{function.name} has {lines} lines"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_functions_take_few_parameters(path: Path) -> None:
    for function in functions(path):
        # Every option of a command is one of its parameters, which is how typer reads them, and
        # a verb of the owner's has the words of its command as keywords.
        is_command = any(decorator(d).endswith(".command") for d in function.decorator_list)
        if is_command or (path.parent.parent.name == "client" and function.name in VERBS):
            continue
        of = function.args
        named = [each.arg for each in (*of.posonlyargs, *of.args, *of.kwonlyargs)]
        named += [each.arg for each in (of.vararg, of.kwarg) if each]
        taken = [name for name in named if name not in ("self", "cls")]
        assert len(taken) <= MAX_PARAMETERS, f"{function.name} takes {len(taken)} parameters"


def decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


@pytest.mark.parametrize("path", stamps.kernel_files(), ids=ids)
def test_compiled_code_changes_with_what_it_calls(path: Path) -> None:
    assert stamps.stamped(path) == path.read_text("utf-8"), "run `make stamps`"


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_no_fastmath(path: Path) -> None:
    calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
    assert not any(k.arg in ("fastmath", "parallel") for call in calls for k in call.keywords)


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_all_names_exist(path: Path) -> None:
    name = ".".join(["verix_anon", *path.relative_to(PACKAGE).with_suffix("").parts])
    module = importlib.import_module(name.removesuffix(".__init__"))
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public)


def modules_after(statement: str) -> set[str]:
    """The top-level packages loaded in a fresh interpreter after a statement."""
    code = f"import sys; {statement}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["verix_anon", "verix_anon.cli", "verix_anon.errors"])
def test_start_up_is_light(module: str) -> None:
    heavy = {"numpy", "numba", "pyarrow", "narwhals", "pandas", "polars", "fsspec"}
    assert not modules_after(f"import {module}") & (heavy | EXTRAS.keys())


def test_verify_loads_no_optional_package() -> None:
    code = "import verix_anon.client.verify, verix_anon.client.release, verix_anon.client.report"
    assert not modules_after(code) & EXTRAS.keys()


def test_each_module_stands_alone() -> None:
    names = [
        ".".join(["verix_anon", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
            ".__init__"
        )
        for path in SOURCES
    ]
    code = (
        "import importlib, sys\n"
        "before = set(sys.modules)\n"
        f"for name in {names!r}:\n"
        "    for loaded in [m for m in sys.modules if m.split('.')[0] == 'verix_anon']:\n"
        "        del sys.modules[loaded]\n"
        "    importlib.import_module(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


OWNER = """
import sys, verix_anon
from verix_anon import cli

verdict = verix_anon.verify("job/delivery", "job/manifest.verix", submission="job/submission")
verix_anon.release("job/delivery", "job/manifest.verix", verdict, table="people.csv")
manifest = "--manifest job/manifest.verix"
for command in (
    "prepare people.csv --target income --quasi all --out other",
    f"verify job/delivery {manifest} --submission job/submission --out verdict.json",
    f"release job/delivery {manifest} --verdict verdict.json --table people.csv --out out.csv",
):
    sys.argv = ["verix-anon", *command.split()]
    try:
        cli.main()
    except SystemExit as stop:
        assert not stop.code, command
print("loaded:", *[name for name in sys.modules if name.startswith("verix_anon.provider")])
"""


@pytest.mark.slow
def test_the_owner_runs_none_of_the_providers_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python and by the commands: prepare, verify and release, in a process of their own."""
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    verix_anon.write_table(verix_anon.datasets.census(300), tmp_path / "people.csv")
    prepared = verix_anon.prepare(tmp_path / "people.csv", target="income", quasi="all")
    (tmp_path / "job").mkdir()
    verix_anon.write_submission(prepared.submission, tmp_path / "job" / "submission")
    verix_anon.write_manifest(prepared.manifest, tmp_path / "job" / "manifest.verix")
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verix_anon.write_delivery(delivery, tmp_path / "job" / "delivery")
    done = subprocess.run(
        [sys.executable, "-c", OWNER], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert (tmp_path / "out.csv").exists()
