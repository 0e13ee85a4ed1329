"""The benchmark of the kit measures whole runs in which every case passes."""

import subprocess

import pytest

from tools.bench import kit


@pytest.mark.long
def test_a_few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "TIMES", 1)
    only = ["--only", "ties", "--only", "contract-k"]
    result = kit.measure(only)
    assert result["jobs"] == 2
    *_, example, engine, end = kit.render(result)
    assert example.startswith("| `examples/provider.py` | 2 | ")
    assert engine.startswith("| `verix-anon anonymize` | 2 | ")
    assert end == ""


def test_a_provider_that_fails_a_case_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "PROVIDERS", {"none": ["false"]})
    with pytest.raises(subprocess.CalledProcessError):
        kit.measure(["--only", "ties"])
