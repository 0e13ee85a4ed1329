"""The site builds without a warning, its links lead somewhere, nothing comes from elsewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools.browser import chromium, needs_chromium
from tools.documents.markdown import ROOT
from tools.documents.site import CONFIG, SITE, Html, build


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="the extra `docs` is not installed")
    pytest.importorskip("mkdocstrings", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout
    assert "No issues found" in done.stdout, done.stdout
    return folder / SITE


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[Path, Html]:
    return {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_no_link_stays_that_a_build_of_the_wheel_would_follow(site: Path) -> None:
    assert not [path for path in site.parent.iterdir() if path.is_symlink()]


def test_it_takes_the_colours_of_all_pages_and_no_more(site: Path) -> None:
    style = (site / "docs" / "assets" / "design.css").read_text(encoding="utf-8")
    assert "--paper: light-dark(" in style
    assert "body" not in style


def test_every_page_is_in_the_menu() -> None:
    config = (ROOT / CONFIG).read_text(encoding="utf-8")
    listed = set(re.findall(r'= "([^"]+\.md)"', config))
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    # Decisions are listed on their own page, and measured figures where they are quoted.
    assert {page for page in pages if "/decisions/0" not in page} <= listed


@pytest.mark.long
def test_links_lead_somewhere(parsed: dict[Path, Html]) -> None:
    assert len(parsed) > 30
    for path, page in parsed.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link) or path.name == "404.html":
                continue
            target, _, anchor = unquote(link).partition("#")
            found = (path.parent / target).resolve() if target else path
            found = found / "index.html" if found.is_dir() else found
            assert found.is_file(), f"{path.name}: {link} leads nowhere"
            if anchor and found in parsed:
                assert anchor in parsed[found].anchors, f"{path.name}: {link}, no such anchor"


@pytest.mark.long
def test_nothing_is_loaded_from_elsewhere(parsed: dict[Path, Html], site: Path) -> None:
    for path, page in parsed.items():
        assert not [url for url in page.loads if re.match(r"(https?:)?//", url)], path
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.long
def test_remarks_for_the_tests_are_not_shown(site: Path) -> None:
    for path in site.rglob("*.html"):
        if path.name != "CONTRIBUTING.html":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"# by hand: |<!-- (?:given|figure): ", text), path


@pytest.mark.long
def test_docstrings_became_a_reference(parsed: dict[Path, Html], site: Path) -> None:
    text = (site / "docs" / "reference" / "api.html").read_text(encoding="utf-8")
    assert ":::" not in text
    for words in ("Prepare a table for a provider.", "Judge a delivery.", "VERIFIED if some layer"):
        assert words in text


@pytest.mark.long
@needs_chromium
def test_search_and_copying_work_from_a_file(site: Path) -> None:
    with chromium() as browser:
        context = browser.new_context()
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        remote: list[str] = []
        page.on(
            "request",
            lambda asked: remote.append(asked.url) if asked.url.startswith("http") else None,
        )
        page.goto((site / "docs" / "tutorial" / "owner.html").as_uri())
        copied = []
        for button in page.locator(".language-console [data-md-type=copy]").all():
            button.click(force=True)
            page.wait_for_timeout(200)
            copied.append(page.evaluate("navigator.clipboard.readText()"))
        page.locator(".md-search__button").click()
        # Letter by letter, as people type: each answer comes before the next one.
        page.keyboard.type("hierarchy", delay=100)
        page.locator("a[href*='h=hierarchy#']").first.wait_for(timeout=20_000)
        found = [a.get_attribute("href") for a in page.locator("a[href*='h=hierarchy']").all()]
    assert remote == []
    # Commands alone: no prompt, no remark for the tests, no output.
    assert copied[0].startswith("make setup\n. .venv/bin/activate\npython -m tools.hospital ")
    assert "verix-anon init admissions.csv --out draft.toml" in copied
    assert not [text for text in copied if "$ " in text or "# by hand" in text]
    in_api = ["reference/api.html" in str(link) for link in found]
    assert (len(found) > 5, in_api == sorted(in_api), in_api[0]) == (True, True, False)
