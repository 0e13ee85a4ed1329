"""Every public name has a docstring with an example, and every example runs."""

import doctest
import inspect
import shutil
import typing
from pathlib import Path

import pytest

import verix_anon

NAMES = [name for name in verix_anon.__all__ if name != "__version__"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, quick_models: None) -> Path:
    """A table, its roles, and a job on it from submission to proof: what the examples are about."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("VERIX_LEDGER", str(folder / "unused-ledger.jsonl"))
        verix_anon.write_table(verix_anon.datasets.census(600), "people.csv")
        Path("roles.toml").write_text(verix_anon.draft("people.csv"), encoding="utf-8")
        for name in ("job", "new"):
            Path(name).mkdir()
        prepared = verix_anon.prepare("people.csv", target="income", quasi="all", k=5)
        verix_anon.write_submission(prepared.submission, "job/submission")
        verix_anon.write_manifest(prepared.manifest, "job/manifest.verix")
        delivery = verix_anon.LocalProvider(threads=1).anonymize(prepared.submission)
        verix_anon.write_delivery(delivery, "job/delivery")
        at = ("job/delivery", "job/manifest.verix")
        verdict = verix_anon.verify(*at, submission="job/submission")
        verix_anon.write_verdict(verdict, "job/verdict.json")
        verix_anon.release(*at, verdict, table="people.csv", out="released.csv")
        (proof,) = verix_anon.prove(*at, record=0, table="people.csv")
        verix_anon.write_proof(proof, "job/proof.json")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "unused-ledger.jsonl"))
    text = inspect.getdoc(getattr(verix_anon, name)) or ""
    assert ">>>" in text, f"{name} has no example"
    known = {"verix_anon": verix_anon, "Path": Path}
    test = doctest.DocTestParser().get_doctest(text, known, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


def types_in(annotation: object) -> set[type]:
    """The classes of ours that an annotation names."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return {annotation} if annotation.__module__.startswith("verix_anon") else set()
    return {found for part in typing.get_args(annotation) for found in types_in(part)}


def test_types_in_public_signatures_are_public() -> None:
    public = [getattr(verix_anon, name) for name in NAMES]
    verbs = [each for each in public if inspect.isfunction(each)]
    methods = [
        method
        for each in public
        if inspect.isclass(each) and each.__name__.endswith("Provider")
        for method in vars(each).values()
        if inspect.isfunction(method) and not method.__name__.startswith("_")
    ]
    # Some are imported for type checkers alone.
    named = {each.__name__: each for each in public} | {"StrPath": str}
    for function in (*verbs, *methods):
        for annotation in typing.get_type_hints(function, localns=named).values():
            for found in types_in(annotation):
                assert found in public, f"{function.__name__} names {found.__name__}"
