"""`verix-anon demo`: the whole journey, with an honest provider and with one that is not."""

import pytest

from cli.jobs import Run


@pytest.mark.parametrize(
    "adversary", ["lazy", "dumb", "approximate", "flipped-labels", "no-weights"]
)
def test_an_adversary(adversary: str, run: Run) -> None:
    code, out, _ = run("demo", "--rows", 2000, "--adversary", adversary)
    assert code == 1
    assert "VIOLATION" in out


def test_an_honest_provider(run: Run) -> None:
    code, out, _ = run("demo", "--rows", 2000)
    assert code == 0
    assert "VERIFIED" in out
    assert out.rstrip().endswith("verix-anon demo --preset paper")


def test_the_papers_system(run: Run) -> None:
    code, out, _ = run("demo", "--rows", 2000, "--preset", "paper")
    assert code == 0
    assert "profile paper" in out
    assert "the paper has no such layer" in out
