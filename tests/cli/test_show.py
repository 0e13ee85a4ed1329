"""What people see beside the result."""

from types import ModuleType, SimpleNamespace

import pytest

from verix_anon.cli import show


@pytest.mark.parametrize("misses", [0, 3])
def test_says_why_a_first_run_takes_long(
    misses: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = SimpleNamespace(cache_misses={"some signature": misses})
    kernel = ModuleType("verix_anon.some_kernels")
    setattr(kernel, "sort", SimpleNamespace(stats=stats))  # noqa: B010
    # Only this one: what the tests compiled before is not the question.
    monkeypatch.setattr("sys.modules", {"verix_anon.some_kernels": kernel})
    show.say_compiled()
    assert bool(capsys.readouterr().err) == (misses > 0)
