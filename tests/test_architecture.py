"""The tree is the architecture: imports point down, and heavy things stay where they are used."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import verix_anon
from tools import import_map, stamps, verifier_closure

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "verix_anon"

ALLOWED = {
    "errors": set[str](),
    "arrays": set[str](),
    "fields": {"errors"},
    "machine": {"errors"},
    "platform": set[str](),
    "progress": set[str](),
    "parent_process": {"platform"},
    "http_server": {"errors"},
    "html_templates": {"translation"},
    "translation": {"errors"},
    "protocol": {"errors", "arrays", "fields"},
    "kernels": {"arrays", "progress"},
    "files": {"errors", "arrays", "fields", "machine", "platform", "protocol"},
    "datasets": {"errors", "arrays"},
    "client": {
        "errors",
        "arrays",
        "fields",
        "machine",
        "platform",
        "progress",
        "protocol",
        "kernels",
        "files",
        "html_templates",
        "translation",
    },
    "provider": {
        "errors",
        "arrays",
        "fields",
        "machine",
        "platform",
        "progress",
        "protocol",
        "kernels",
        "files",
    },
    "service": {
        "errors",
        "fields",
        "html_templates",
        "http_server",
        "machine",
        "platform",
        "progress",
        "protocol",
        "files",
        "provider",
    },
    # The desk shows what the client computes; long work is a command, which it only starts.
    "desk": {
        "errors",
        "fields",
        "html_templates",
        "http_server",
        "machine",
        "platform",
        "parent_process",
        "progress",
        "protocol",
        "files",
        "client",
        "datasets",
        "translation",
    },
    "adversaries": {"errors", "arrays", "protocol", "kernels", "provider"},
    # It shows cases and compares; what makes them is in tools/kit.
    "conform": {"errors", "fields", "platform", "progress", "protocol", "files", "client"},
    # A page and its program in another language; Python only puts it together.
    "checker": {"errors", "files", "translation"},
    "cli": {
        "checker",
        "errors",
        "fields",
        "machine",
        "platform",
        "parent_process",
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
        "translation",
    },
}
# Optional packages and those for one purpose, and the modules or folders that may import each.
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
    "uvicorn": "http_server.py",
    "jinja2": "html_templates.py",
    "markupsafe": ("client/report/", "desk/", "service/"),
    "matplotlib": "client/report/",
    "tomlkit": "client/table/roles_editor.py",
    "python_calamine": "files/tables/spreadsheets.py",
    "xlsxwriter": "files/tables/spreadsheets.py",
    "pyreadstat": "files/tables/statistics_files.py",
    "polars": "files/tables/statistics_files.py",
    "adbc_driver_postgresql": "files/tables/sql_tables.py",
}
# The protocol has no randomness, clock, network or files.
IMPURE = {"random", "secrets", "time", "socket", "urllib", "os", "pathlib", "io", "fsspec"}

SOURCES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the full dotted names that a file imports, anywhere in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top_level(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    return {name.split(".")[0] for name in imported(path)}


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def held(offenders: Iterable[str]) -> None:
    """Fail with every offender, so that one run shows all of them."""
    found = list(offenders)
    assert not found, "\n" + "\n".join(found)


def test_imports_are_absolute() -> None:
    held(
        f"{shown(path)}:{node.lineno} has a relative import"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    )


def test_imports_point_down() -> None:
    held(
        f"{shown(path)} must not import {name}"
        for path in SOURCES
        if not (path.parent == PACKAGE and path.stem.startswith("__"))
        for name in imported(path)
        if name.startswith("verix_anon.")
        and (part := name.split(".")[1]) not in ("__version__", package_of(path))
        and part not in ALLOWED[package_of(path)]
    )


def test_protocol_is_pure() -> None:
    held(
        f"{shown(path)} must not import {name}"
        for path in sorted((PACKAGE / "protocol").rglob("*.py"))
        for name in sorted(top_level(path) & IMPURE)
    )


def test_the_second_implementation_stands_alone() -> None:
    """It is what the engine is held to, so it shares nothing with it."""
    found = top_level(ROOT / "tools" / "kit" / "independent.py")
    assert found <= set(sys.stdlib_module_names)


def test_optional_packages_stay_in_their_module() -> None:
    held(
        f"{shown(path)} must not import {name}, which belongs in {EXTRAS[name]}"
        for path in SOURCES
        for name in sorted(top_level(path) & EXTRAS.keys())
        if not shown(path).startswith(EXTRAS[name])
    )


def test_the_desk_computes_nothing() -> None:
    """Pages are routes, forms and templates: tables and numbers are the client's."""
    own = sys.stdlib_module_names | {"verix_anon", "fastapi", "starlette"}
    held(
        f"{shown(path)} must not import {name}"
        for path in sorted((PACKAGE / "desk").rglob("*.py"))
        for name in sorted(top_level(path) - own)
    )


def test_tools_and_studies_stand_without_the_tests() -> None:
    """Tests may import tools; a tool that imports a test's helper would close a circle."""
    tests = {
        ".".join(path.relative_to(ROOT / "tests").with_suffix("").parts)
        for path in (ROOT / "tests").rglob("*.py")
    }
    held(
        f"{path.relative_to(ROOT)} must not import {name}"
        for folder in ("tools", "experiments", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in imported(path)
        if name.startswith("tests.") or {name, name.rpartition(".")[0]} & tests
    )


def test_compiled_code_changes_with_what_it_calls() -> None:
    held(
        f"{shown(path)} is out of date: run `make stamps`"
        for path in stamps.kernel_files()
        if stamps.stamped(path) != path.read_text("utf-8")
    )


def test_no_fastmath() -> None:
    held(
        f"{shown(path)}:{node.lineno} asks for {keyword.arg}"
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in ("fastmath", "parallel")
    )


def test_all_names_exist() -> None:
    modules = [importlib.import_module(module_name(path)) for path in SOURCES]
    held(
        f"{module.__name__} has no {name}"
        for module in modules
        for name in getattr(module, "__all__", [])
        if not hasattr(module, name)
    )


def modules_after(statement: str) -> set[str]:
    """The top-level packages loaded in a fresh interpreter after a statement."""
    code = f"import sys; {statement}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {"sklearn", "pandas", "scipy", "xgboost", "numba", "narwhals", "polars", "fsspec"}
PREPARE = "prepare people.csv --target income --quasi all --quiet --out"
JUDGED = "job/delivery --manifest job/manifest.verix"
USED = {
    "init people.csv --out roles.toml": {"narwhals"},
    f"{PREPARE} job": {"narwhals", "numba", "scipy", "xgboost"},
    "anonymize job/submission --out job/delivery": {"numba"},
    f"verify {JUDGED} --skip fingerprint,utility": {"numba"},
    f"verify {JUDGED} --submission job/submission --out v.json": {"numba", "scipy", "xgboost"},
    f"release {JUDGED} --verdict v.json --table people.csv --out out.csv": {"narwhals"},
    "run people.csv --target income --quasi all --out whole": {
        *("narwhals", "numba", "scipy", "xgboost")
    },
    # A mistake is found before anything slow is loaded.
    f"{PREPARE} other".replace("income", "incom"): {"narwhals"},
}
"""What each command loads of the packages that take long to load."""


def test_start_up_is_light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = modules_after("import verix_anon, verix_anon.cli, verix_anon.errors")
    assert not loaded & (HEAVY | {"numpy", "pyarrow"} | EXTRAS.keys())
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    monkeypatch.chdir(tmp_path)
    verix_anon.write_table(verix_anon.datasets.census(300), "people.csv")
    for words, used in USED.items():
        run = f"sys.argv = ['verix-anon', *{words.split()}]; cli.main()"
        show = f"atexit.register(lambda: print('loaded:', *(sys.modules.keys() & {HEAVY})))"
        code = f"import atexit, sys; from verix_anon import cli; {show}; {run}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == (2 if "incom " in words else 0), done.stderr
        assert {*done.stdout.splitlines()[-1].split()[1:]} == used, words


def test_verify_loads_no_optional_package() -> None:
    code = "import verix_anon.client.verify, verix_anon.client.release, verix_anon.client.report"
    assert not modules_after(code) & EXTRAS.keys()


def test_the_verifier_is_small_enough_to_audit() -> None:
    """All that `verify` of a delivery on disk loads; docs/architecture.md lists it for auditors."""
    loaded = verifier_closure.loaded_by_verify()
    assert sum(loaded.values()) <= 8_000, "run `python -m tools.verifier_closure`"
    said = verifier_closure.listed_in_docs()
    assert said == loaded, "run `python -m tools.verifier_closure --write`"


def test_each_module_stands_alone() -> None:
    names = [module_name(path) for path in SOURCES]
    # Imports point down, so that a circle can only be within one package: others stay loaded.
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    package = name.split('.')[:2]\n"
        "    for loaded in [m for m in sys.modules if m.split('.')[:2] == package]:\n"
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


def test_the_maps_name_every_package() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    for name in ("docs/architecture.md", "CONTRIBUTING.md", "src/verix_anon/__init__.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not {each for each in packages if f"`{each}`" not in text}, name


def test_the_picture_is_of_the_real_imports() -> None:
    assert import_map.drawn() == import_map.PICTURE.read_text("utf-8"), "run `make map`"


def test_names_mean_one_thing() -> None:
    """A public class name exists once in the package."""
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(shown(path))
    doubled = {name: at for name, at in homes.items() if len(at) > 1}
    assert not doubled


SAME_THING = {
    "gate": "the gate that every request passes, of the desk and of the service",
    "server": "the process that serves, of the desk and of the service",
    "splits": "the layer, and the loops that it checks with",
}
"""Names of files in two packages, and the one thing that each means."""


def test_a_file_name_means_one_thing() -> None:
    """A command or a page is called like what it is about; the other names are used once."""
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        if path.stem != "__init__" and not shown(path).startswith(("cli/", "desk/pages/")):
            homes.setdefault(path.stem, []).append(shown(path))
    doubled = {name: at for name, at in homes.items() if len(at) > 1}
    assert doubled.keys() == SAME_THING.keys(), doubled


def test_only_packages_list_their_names() -> None:
    listing = [
        shown(p) for p in SOURCES if p.stem != "__init__" and "\n__all__ = " in p.read_text()
    ]
    assert not listing
