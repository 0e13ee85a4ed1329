"""A study's cells rest on what its modules import, and on nothing else."""

from pathlib import Path

import pytest

from experiments import studies
from experiments.core import sources
from experiments.core.sources import ROOT, code_digest

FILES = {
    "experiments/studies/one/study.py": "import numpy\nfrom experiments.core import shared\n",
    "experiments/studies/one/job.py": "def main():\n    import verix_anon.protocol.rules\n",
    "experiments/studies/one/render.py": "",
    "experiments/studies/two/study.py": "from experiments.studies.one.study import run\n",
    "experiments/core/__init__.py": "",
    "experiments/core/shared.py": "from verix_anon.client import prepare\n",
    "experiments/core/other.py": "",
    "src/verix_anon/__init__.py": "",
    "src/verix_anon/client/__init__.py": "from verix_anon.client.models import fit\n",
    "src/verix_anon/client/models.py": "from verix_anon.client import prepare\n",
    "src/verix_anon/client/prepare/__init__.py": "",
    "src/verix_anon/client/verify.py": "",
    "src/verix_anon/protocol/__init__.py": "",
    "src/verix_anon/protocol/rules.py": "",
    "numpy.py": "",
}
REACHED = {
    "experiments/studies/one/study.py",
    "experiments/studies/one/job.py",
    "experiments/core/__init__.py",
    "experiments/core/shared.py",
    "src/verix_anon/client/__init__.py",
    "src/verix_anon/client/models.py",
    "src/verix_anon/client/prepare/__init__.py",
    "src/verix_anon/protocol/rules.py",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_digest_changes_with_what_is_imported(root: Path, name: str) -> None:
    before = code_digest.__wrapped__("one", root)
    (root / name).write_text(FILES[name] + "x = 1\n")
    assert (code_digest.__wrapped__("one", root) != before) is (name in REACHED)


def test_a_study_that_uses_another_rests_on_it(root: Path) -> None:
    # On its module, not on what that one runs in processes of its own.
    found = {str(path.relative_to(root)) for path in sources.sources("two", root)}
    own = {"experiments/studies/two/study.py"}
    apart = {"experiments/studies/one/job.py", "src/verix_anon/protocol/rules.py"}
    assert found == REACHED - apart | own


@pytest.mark.parametrize("study", studies.names())
def test_what_shows_a_result_does_not_change_it(study: str) -> None:
    found = {str(path.relative_to(ROOT)) for path in sources.sources(study)}
    assert "src/verix_anon/protocol/contract.py" in found
    rooms = ("src/verix_anon/cli/", "src/verix_anon/client/report/", "experiments/core/report.py")
    assert not [path for path in found if path.startswith(rooms)]
    assert not [path for path in found if path.endswith(("/render.py", "/figures.py"))]
