"""A desk on an empty folder, in this process, and a browser that it lets in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk.browsing import Browser, Given
from verix_anon.desk.rendering import Desk
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.tasks import Tasks
from verix_anon.provider.local import LocalProvider


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    """The parts of a desk; whatever it started ends with the test."""
    folder = tmp_path / "folder"
    folder.mkdir()
    tasks = Tasks(folder)
    try:
        yield Given(Desk(folder, tasks, LocalProvider()), Sessions())
    finally:
        tasks.close()


@pytest.fixture
def browser(given: Given) -> Browser:
    """A browser that is let in."""
    return Browser(given).entered()
