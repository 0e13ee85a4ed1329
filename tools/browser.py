"""Debian's Chromium, driven through Playwright; tests that need it are skipped without it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserType, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium; `make system` installs it"
)


FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")


@contextmanager
def driver() -> Iterator[BrowserType]:
    """What starts browsers."""
    with sync_playwright() as playwright:
        yield playwright.chromium


def launch(kind: BrowserType) -> Browser:
    """A browser without a screen; it never leaves this machine."""
    return kind.launch(executable_path=CHROMIUM, args=FLAGS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """One browser, to the end of a block."""
    with driver() as kind:
        browser = launch(kind)
        try:
            yield browser
        finally:
            browser.close()
