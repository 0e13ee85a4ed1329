"""The benchmark of the desk, with a small table."""

import pytest

from tools.bench import desk


@pytest.mark.long
def test_every_page_is_asked_while_the_work_runs() -> None:
    found = desk.measure(20_000)
    assert list(found["pages"]) == list(desk.PAGES)
    for page in found["pages"].values():
        assert page["answers"] >= 1
        assert 0 < page["median"] <= page["slowest"]
    assert "| `/jobs/job/release` |" in "\n".join(desk.render(found))
