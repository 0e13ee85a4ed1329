"""The operator's page in a real browser: behind its token, and without anything that runs."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from files.samples import sent
from service.running import Service, create, ended, order, running, submit
from tools.browser import chromium, needs_chromium
from verix_anon.files.folder_writer import write_submission

pytestmark = [needs_chromium, pytest.mark.long]
HOSTILE = "<script>alert(1)</script><b onclick=x>\"'&amp;"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a job that is done, one of a tenant with an awkward name, and no more."""
    folder = tmp_path_factory.mktemp("operated")
    write_submission(sent(), folder / "submission")
    with running(folder / "folder") as service:
        with service.client() as client:
            assert ended(client, submit(client, folder / "submission"))["state"] == "done"
        with service.client(service.token(HOSTILE)) as client:
            create(client, order(folder / "submission"))
        yield service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def opened(browser: Browser, service: Service, token: str, width: int) -> tuple[Page, list[str]]:
    """The page as a browser shows it to whoever gives a token, and all that went wrong."""
    context = browser.new_context(
        http_credentials={"username": "operator", "password": token},
        viewport={"width": width, "height": 800},
    )
    page, trouble = context.new_page(), list[str]()
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on(
        "request",
        lambda request: (
            None if request.url == f"{service.url}/operator" else trouble.append("asks")
        ),
    )
    page.goto(f"{service.url}/operator")
    return page, trouble


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_jobs_are_shown(browser: Browser, service: Service, width: int) -> None:
    page, trouble = opened(browser, service, service.token(None), width)
    assert page.locator("h1").inner_text() == "The service"
    rows = page.locator("#jobs tbody tr").all_inner_texts()
    assert len(rows) == 2
    assert HOSTILE in rows[0]
    assert "uploading" in rows[0]
    assert "acme" in rows[1]
    assert "done" in rows[1]
    assert " s" in rows[1]
    assert page.locator(".counts li").all_inner_texts()[3] == "1 done"
    assert page.locator("script, img, iframe, form").count() == 0
    # The style counts, although the policy allows nothing but it.
    assert page.locator(".counts").evaluate("e => getComputedStyle(e).display") == "flex"
    tenants = page.locator("#tenants tbody tr").all_inner_texts()
    assert tenants[0].split("\t")[0] == HOSTILE
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert not trouble
    page.context.close()


def test_it_is_accessible_light_and_dark(browser: Browser, service: Service) -> None:
    page, trouble = opened(browser, service, service.token(None), 390)
    seen = "getComputedStyle(document.body).backgroundColor"
    for scheme, least, most in (("light", 690, 765), ("dark", 0, 120)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert least <= sum(map(int, re.findall(r"\d+", page.evaluate(seen)))) <= most
        assert Axe().run(page).response["violations"] == []
    assert not trouble
    page.context.close()


def test_nobody_else_sees_them(browser: Browser, service: Service) -> None:
    page, _ = opened(browser, service, service.token(), 1280)
    assert "unauthorized" in page.content()
    assert "acme" not in page.content()
    page.context.close()


def test_the_policy_is_strict(service: Service) -> None:
    with service.client(service.token(None)) as client:
        answer = client.get("/operator")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
