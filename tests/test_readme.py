"""What the README promises beyond its commands and links, which run with the other pages."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_first_screen() -> None:
    """The pipeline, commands, a verdict with one failing layer, ten lines of Python."""
    lines = README.splitlines()
    screen = "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("## "))])
    assert "table -> prepare -> submission" in screen
    assert screen.count("\n$ ") == 3
    statuses = re.findall(r"^ +\w+ +(pass|fail) +decides", screen, re.MULTILINE)
    assert sorted(statuses) == ["fail", "pass", "pass", "pass", "pass"]
    (python,) = re.findall(r"```python\n(.*?)```", screen, re.DOTALL)
    assert len(python.splitlines()) <= 10
    assert "## What a pass proves, and what it does not" in README
