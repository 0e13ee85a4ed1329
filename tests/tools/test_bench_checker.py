"""The benchmark of check.html, with a small table and a small file."""

import pytest

from tools.bench import checker
from tools.browser import needs_chromium


@pytest.mark.long
@needs_chromium
def test_a_proof_and_a_file_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "TIMES", 2)
    found = checker.measure(2_000, 1)
    assert found["splits"] >= 5
    assert all(seconds > 0 for seconds in found["proof_seconds"] + found["file_seconds"])
    assert "| the proof of one record of 2,000 x 16, " in "\n".join(checker.render(found))
