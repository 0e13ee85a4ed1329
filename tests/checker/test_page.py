"""check.html: one file that needs no network, in every language, for everybody."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checker.asking import Question, questions
from cli.jobs import Run
from tools.browser import chromium, needs_chromium
from verix_anon.checker import CHECKER, PAGE, page, write_page
from verix_anon.translation import LANGUAGES, keys, texts

SOURCES = CHECKER.parent
BY_NAME = {question.name: question for question, _ in questions()}
AXE_RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]}
}


def test_it_is_one_small_file_that_loads_nothing() -> None:
    made = page()
    assert len(made.encode()) < 100_000
    assert "default-src 'none'" in made
    assert re.findall(r"https?://[^\s\"'<`]+", made) == ["https://in-toto.io/Statement/v1"]
    assert not re.search(r"<(link|img|iframe)|\bsrc=|innerHTML|\bimport\(|\beval\(|fetch\(", made)


def test_every_sentence_is_in_the_catalogue() -> None:
    written = "".join((SOURCES / name).read_text("utf-8") for name in ("check.js", "page.js"))
    said = re.findall(r'(?:Refused\(|Mistake\(|code: )"([a-z0-9-]+)"', written)
    said += re.findall(r'require\(.*, "([a-z-]+)"(?:, \{.*\})?\);', written)
    said += re.findall(r'data-text="([a-z-]+)"', (SOURCES / "page.html").read_text("utf-8"))
    assert len(said) > 60
    assert set(said) - set(keys("check")) == set()


def test_the_page_holds_every_language_and_no_text_ends_its_script() -> None:
    made = page()
    _, _, held = made.partition("const catalogue = ")
    catalogue, _ = json.JSONDecoder().raw_decode(held)
    assert catalogue.keys() == {*LANGUAGES}
    for language, words in catalogue.items():
        said = {code: texts(language)[f"check.{code}"] for code in keys("check")}
        assert words == said | {"language": texts(language)["form.language"]}
    assert "<" not in held.partition("\n")[0]


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_program_for_node_reads_the_same_texts(tmp_path: Path) -> None:
    for name, data in BY_NAME["proof-bytes-key-twice"].files.items():
        (tmp_path / name).write_bytes(data)
    words = ["prove", "check", str(next(tmp_path.iterdir())), "--root", "0" * 64]
    done = subprocess.run(["node", str(CHECKER), *words], capture_output=True, check=False)
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem["text"].endswith(texts("en")[f"check.{problem['code']}"])
    assert not any(re.search(r'\\u|\\[^"\\]', texts("en")[f"check.{c}"]) for c in keys("check"))


def test_it_is_written_beside_a_file_once(tmp_path: Path) -> None:
    place = write_page(tmp_path / "proof.json")
    assert place == tmp_path / PAGE
    assert place.read_text("utf-8") == page()
    assert write_page(tmp_path / "other.json") == place


def test_the_command_writes_it_beside_a_receipt(tmp_path: Path, run: Run) -> None:
    for name, data in BY_NAME["signed-receipt"].files.items():
        (tmp_path / name).write_bytes(data)
    words = ("receipt", "check", tmp_path / "receipt", "--key", tmp_path / "key")
    assert run(*words, "--page").code == 0
    assert (tmp_path / PAGE).read_text("utf-8") == page()
    (tmp_path / PAGE).write_text("mine")
    assert run(*words, "--page").code == 2
    assert (tmp_path / PAGE).read_text("utf-8") == "mine"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The page from a file, narrow, without a network; it must say nothing to the console."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True, locale="en")
    found = context.new_page()
    said: list[str] = []
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.goto(write_page(tmp_path / "x").as_uri())
    yield found
    assert said == []
    context.close()


def drop(opened: Any, question: Question, **names: str) -> None:
    files = [
        {"name": names.get(name, name), "mimeType": "", "buffer": data}
        for name, data in question.files.items()
    ]
    opened.set_input_files("#files", files)
    opened.locator("#list li").nth(len(files) - 1).wait_for()
    opened.wait_for_selector("article")


@needs_chromium
def test_a_reader_gets_an_answer_and_its_reasons(opened: Any) -> None:
    drop(opened, BY_NAME["signed-verdict"], owner="owner.pub", key="provider.pub", verdict="v.json")
    assert opened.inner_text("article .outcome") == "The signatures are good."
    assert "The owner's verdict is VERIFIED" in opened.inner_text("article")
    opened.click("article summary")
    assert "Receipt and verdict are about the same files" in opened.inner_text("article")
    opened.click("[data-language=de]")
    opened.wait_for_selector("html[lang=de]")
    opened.locator(".outcome", has_text="Die Unter").first.wait_for()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


@needs_chromium
def test_a_violation_is_not_shown_as_good(opened: Any) -> None:
    drop(opened, BY_NAME["signed-violation"], owner="owner.pub", key="provider.pub")
    assert "yes" not in opened.get_attribute("article", "class").split()
    assert "The owner's verdict is VIOLATION" in opened.inner_text("article")


@needs_chromium
def test_a_proof_needs_a_root(opened: Any) -> None:
    question = BY_NAME["proof-clear"]
    drop(opened, question)
    assert opened.inner_text("article .outcome") == "This cannot be said yet."
    opened.click("#more summary")
    opened.fill("#root", question.words[question.words.index("--root") + 1])
    opened.wait_for_selector("article.yes")
    opened.fill("#root", "0" * 64)
    opened.wait_for_selector("article.no")
    assert "another root" in opened.inner_text("article")


@needs_chromium
def test_a_damaged_file_and_a_weak_key_are_refused(opened: Any) -> None:
    drop(opened, BY_NAME["proof-bytes-key-twice"])
    opened.click("#more summary")
    opened.fill("#root", "0" * 64)
    opened.wait_for_selector("article.no")
    assert "occurs twice" in opened.inner_text("article")
    drop(opened, BY_NAME["signed-weak-one"])
    assert "anybody can sign for it" in opened.inner_text("#list")


@needs_chromium
def test_a_released_file_is_looked_up_in_the_log(opened: Any) -> None:
    drop(opened, BY_NAME["series-file"], log="series.json", file="released.csv")
    assert opened.inner_text("article .outcome") == "It holds."
    opened.click("article summary")
    assert "released.csv is release number 3" in opened.inner_text("article")


@needs_chromium
def test_a_file_that_cannot_be_read_does_not_stop_the_others(opened: Any) -> None:
    question = BY_NAME["series-whole"]
    opened.evaluate(
        """(log) => {
            const refused = () => Promise.reject(new DOMException("", "NotFoundError"));
            const lost = { arrayBuffer: refused };
            const folder = (size) => ({ name: `folder-${size}`, size, slice: () => lost });
            const large = { name: "large.csv", size: 2 ** 40 };
            const odd = (name) => new File([JSON.stringify({ format: name })], name);
            const drop = (files) => {
                const event = new Event("drop");
                event.dataTransfer = { files };
                document.dispatchEvent(event);
            };
            drop([folder(4096), folder(0), large, odd("constructor"), odd("__proto__")]);
            drop([new File([" ".repeat(200) + log], "series.json")]);
        }""",
        question.files["log"].decode(),
    )
    opened.locator("#list li", has_text="series.json").wait_for()
    listed = opened.locator("#list li").all_inner_texts()
    assert [("cannot be read" in each, "larger than" in each) for each in listed] == [
        *[(True, False)] * 2,
        (False, True),
        *[(False, False)] * 3,
    ]
    opened.wait_for_selector("article.yes, article.no")
    assert "The log series.json" in opened.inner_text("#cards")


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    opened.emulate_media(color_scheme=scheme)
    drop(opened, BY_NAME["signed-verdict"], owner="owner.pub", key="provider.pub", verdict="v.json")
    opened.click("#more summary")
    drop(opened, BY_NAME["proof-other-root"])
    found = Axe().run(opened, options=AXE_RULES).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


@needs_chromium
def test_the_answers_are_printed_without_the_form(opened: Any) -> None:
    drop(opened, BY_NAME["series-file"], log="series.json", file="released.csv")
    opened.emulate_media(media="print")
    assert opened.is_visible("article .outcome")
    assert not opened.is_visible("#drop")
    assert not opened.is_visible("[data-language=de]")


@pytest.mark.long
@needs_chromium
def test_a_file_of_100_mb_is_hashed_with_a_progress_bar(opened: Any, tmp_path: Path) -> None:
    large = tmp_path / "released.csv"
    with large.open("wb") as file:
        for i in range(100):
            file.write(b"%7d," % i * (1 << 17))
    opened.evaluate(
        """() => {
            window.seen = new Set();
            const bar = document.getElementById("bar");
            const note = () => window.seen.add(bar.value);
            new MutationObserver(note).observe(bar, { attributes: true });
        }"""
    )
    opened.set_input_files("#files", str(large))
    opened.wait_for_selector("article")
    sha = subprocess.run(["sha256sum", str(large)], capture_output=True, check=True).stdout[:64]
    assert sha.decode() in opened.inner_text("article")
    assert opened.evaluate("window.seen.size") > 5
