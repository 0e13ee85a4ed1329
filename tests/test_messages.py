"""What the owner's code says, and the desk may show, is in every catalogue.

Each message is taken from the source, with samples in the place of its values, and must be found by
a pattern of the catalogue. What is not shown by the desk is listed with the reason.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import verix_anon
from verix_anon.files.tables import file_kinds
from verix_anon.translation import LANGUAGES, RECORD, find

PACKAGE = Path(verix_anon.__file__).parent
SAYING = (
    *("cli/anonymize.py", "cli/init.py", "cli/options.py", "cli/prepare.py", "cli/release.py"),
    *("client/explore.py", "client/job.py", "client/ledger.py", "client/manifest.py"),
    *("client/audit_log.py", "client/owner_files.py", "client/privacy_sheet.py"),
    *("client/prepare", "client/release", "client/remote", "client/series", "client/table"),
    *("client/verify", "desk", "files/atomic_write.py", "files/desk_folder.py"),
    *("files/table_form.py", "files/tables", "files/text_versions.py", "machine.py"),
    "protocol/records.py",
)
"""Whose errors a page of the desk, or the box of a step that failed, can show."""
ERRORS = {"TableError", "ContractError", "NotAcceptedError", "ProviderError", "Lost", "fail"}
ELSEWHERE = {
    "client/release/read_back.py": "reads a released table, in Python alone",
    "client/series/deduction.py": "is a bound of the algorithm",
    "desk/sessions.py": "is said in the terminal, when the desk starts",
}
PASSED_ON = "says what another error said"
TERMINAL = "is about options that the desk does not use together"
PYTHON = "is about arguments that only Python has"
DAMAGED = "says how a file of ours was spoiled by hand"
NOT_SHOWN = {
    "--spark": TERMINAL,
    "add either --out FILE to publish the table": TERMINAL,
    "--privacy-sheet goes with --out": TERMINAL,
    "--sheet is for a table that is a spreadsheet": TERMINAL,
    "--sign signs the log of a series": TERMINAL,
    "--as is given twice for all columns": TERMINAL,
    "the audit log {self.path} cannot be {done}": PASSED_ON,
    "roles must be the file that init drafted": PYTHON,
    "{path}: {error}": PASSED_ON,
    "{fields.where}: losses must have as many shares": DAMAGED,
    "the privacy sheet: over_time lacks": DAMAGED,
    "*problems": PASSED_ON,
    "problem": PASSED_ON,
    "the preview: cells must be a list": DAMAGED,
    "_words(error)": PASSED_ON,
    "str(problem)": PASSED_ON,
    "str(refused.problem)": PASSED_ON,
    "patience and wait must be numbers of seconds": PYTHON,
    "the index {', '.join": PYTHON,
    "a table is a pandas, polars or pyarrow table": PYTHON,
    "a table is pandas, polars or pyarrow": PYTHON,
    "str(error)": PASSED_ON,
    "provider_keys must be paths of keys": PYTHON,
    "{shown(min(decides))} cannot be left out": TERMINAL,
    "an epsilon is for": TERMINAL,
    "the ledger remembers the last line of an audit log": PYTHON,
    "{shown} {said}": PASSED_ON,
    "{shown_url(name)} {error}": PASSED_ON,
    "{table_sources.shown_url(self.name)} {": PASSED_ON,
    "str(Question(": PASSED_ON,
    "{shown_url(name)} {without_secrets": PASSED_ON,
    "{name} {way}": "is held by the test of file_kinds.toml below",
    "{name} is {what} {WHATEVER}; {way_out}": "is held by the test of file_kinds.toml below",
    "said.strip()": PASSED_ON,
    "the target has a value other than 0 and 1": PYTHON,
    "column {column.name!r} has -0.0": PYTHON,
    "column {column.name!r} has a position outside": PYTHON,
    "the records have": PYTHON,
}
"""The beginnings of messages that need no translation."""
NOTING = (
    *("client/prepare/__init__.py", "client/table/guess.py", "client/table/roles_editor.py"),
    *("client/release/join.py", "client/release/row_order.py", "desk/pages/privacy.py"),
    *("desk/tasks.py", "files/table_form.py", "files/tables/cell_values.py"),
    *("files/tables/column_kinds.py", "files/tables/statistics_files.py"),
    *("files/tables/subprocess_reader.py", "files/tables/text_loading.py"),
    "files/tables/text_table.py",
)
"""Who says more than errors: notes on reading, reasons of guesses, advice, warnings."""
PARTS = (
    *("two submissions of one table", "was prepared before (x)", "3 values in 3 rows", "guessed x"),
    *("as many digits each, as postcodes", "numbers with a decimal comma", "are so)"),
    *("are the table, at no distance", "in the order of the table (--keep-order)"),
    *("has dates such as x", "the forms differ", "and x: if it means missing", "record 3 has"),
    *("the next is", "no other is negative", "has up to", "give its encoding"),
    *("field, the header", "fields, the header"),
    *("read as Windows-1252 it holds", "preparing 3 records"),
)
"""Parts of longer sentences, which the catalogues hold as a whole."""
CODE = re.compile(r"[\\^|\n]|\[\]|\(\?|^\W|^import |^x (?:=|from) x$|^the reader of tables failed")
"""What Python or a pattern reads, and continuations of a sentence."""
OTHERS = [each for each in LANGUAGES if each != RECORD]
SAMPLES = ("x", "3", "'x'", "2026-01-31")
"""What may stand for a value: a word, a number, a quoted name, a day."""
MOST_TRIED = 3000


class Said:
    """The messages of one module."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text("utf-8"))
        self.texts: dict[str, list[ast.expr]] = {}
        """What a name may stand for: strings that are assigned to it, or that it returns."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.texts.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, ast.FunctionDef):
                returned = (each for each in ast.walk(node) if isinstance(each, ast.Return))
                found = [each.value for each in returned if each.value is not None]
                self.texts.setdefault(node.name, []).extend(found)

    def messages(self) -> Iterator[ast.expr]:
        """The first argument of every error."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if name in ERRORS:
                    yield node.args[0]

    def notes(self) -> Iterator[ast.expr]:
        """Every other text of three words or more, except what Python or a pattern reads."""
        inner = {id(part) for each in self.messages() for part in ast.walk(each)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr | ast.Subscript | ast.AnnAssign):
                inner |= {id(part) for part in ast.walk(node) if part is not node}
            elif isinstance(node, ast.Expr):
                inner.add(id(node.value))
            if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in inner:
                words = [each for each in self.samples(node) if len(each.split()) > 2]
                if words and not CODE.search(words[0]):
                    yield node

    def samples(self, node: ast.expr, depth: int = 0) -> list[str]:
        """Texts that this expression may give; none if that cannot be told."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=values):
                return self._joined(values, depth)
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.samples(body, depth), *self.samples(orelse, depth)]
            case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mult()):
                return ["", text]
            case ast.BoolOp(values=values):
                return [text for each in values for text in self.samples(each, depth)]
            case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr="format")):
                return [text.replace("{!r}", "'x'") for text in self.samples(name, depth)]
            case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if depth < 3:
                found = (self.samples(each, depth + 1) for each in self.texts.get(name, ()))
                return list(itertools.chain.from_iterable(found))
        return []

    def _joined(self, values: list[ast.expr], depth: int) -> list[str]:
        parts = []
        for each in values:
            if isinstance(each, ast.Constant):
                parts.append([str(each.value)])
            elif isinstance(each, ast.FormattedValue) and each.conversion == ord("r"):
                parts.append(["'x'"])
            elif isinstance(each, ast.FormattedValue) and each.format_spec is not None:
                parts.append(["3"])
            elif isinstance(each, ast.FormattedValue):
                parts.append([*self.samples(each.value, depth + 1), *SAMPLES])
        made = itertools.islice(itertools.product(*parts), MOST_TRIED)
        return ["".join(each) for each in made]


def modules() -> list[str]:
    found = (path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return sorted(name for name in found if name.startswith(SAYING) and name not in ELSEWHERE)


def unknown(module: str, language: str) -> Iterator[str]:
    said = Said(PACKAGE / module)
    for node in said.messages():
        samples = said.samples(node)
        # The name of a file is put in front of what its reader says.
        tried = (find(f"{before}{each}", language) for before in ("", "x ") for each in samples)
        if all(found is None for found in tried):
            yield ast.unparse(node).lstrip("f").strip("\"'")


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_is_in_every_language(language: str) -> None:
    missing = [text for each in modules() for text in unknown(each, language)]
    assert [each for each in missing if not each.startswith((*NOT_SHOWN,))] == []
    unused = [one for one in NOT_SHOWN if not any(each.startswith(one) for each in missing)]
    assert unused == []


@pytest.mark.parametrize("language", OTHERS)
def test_what_to_do_with_a_file_that_is_no_table_is_in_every_language(language: str) -> None:
    ways = [f"people.doc {way}" for way in file_kinds.NOT_TAKEN.values()]
    ways += [f"x is {what} {file_kinds.WHATEVER}; {way}" for _, what, way in file_kinds.OTHERS]
    assert [each for each in ways if find(each, language) is None] == []


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("module", NOTING)
def test_every_note_is_in_every_language(module: str, language: str) -> None:
    said = Said(PACKAGE / module)
    missing = []
    for node in said.notes():
        samples = said.samples(node)
        if samples and all(find(each, language) is None for each in samples):
            missing.append(samples[0])
    assert [each for each in missing if not any(part in each for part in PARTS)] == []
