"""The benchmark of the desk, with a small table."""

import pytest

from tools.bench import desk
from verix_anon.client.job import JourneyStep


@pytest.mark.long
def test_every_page_and_preview_is_asked_and_pages_while_the_work_runs() -> None:
    found = desk.measure(5_000)
    assert {f"/jobs/{desk.JOB}/{step}" for step in JourneyStep} <= {*desk.PAGES}
    for part, paths in (
        ("pages", desk.PAGES),
        ("previews", desk.PREVIEWS),
        ("beside", desk.PAGES),
    ):
        assert list(found[part]) == list(paths)
        for times in found[part].values():
            assert times["answers"] >= 1
            assert 0 < times["median"] <= times["slowest"]
    assert "| `/jobs/job/release` |" in "\n".join(desk.render(found))
