"""Every page of the documentation runs, and every link in it leads somewhere."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow.csv
import pytest

import verix_anon
from service.running import running
from tools.documents.markdown import ROOT, RUN, agrees, anchors, blocks, given, links, pages
from tools.documents.runner import Page
from verix_anon.client.owner_files import write_manifest
from verix_anon.datasets import census
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.files.keys import new_key, write_key
from verix_anon.files.tables import read_table

# The commands marked `# by hand: REASON`, page by page: everything else runs.
BY_HAND = {
    "docs/how-to/spark.md": {
        "pip install -e '.[spark]'": "Spark's pandas is not that of these pages",
        "verix-anon anonymize job/submission --engine spark --out job/delivery": "it needs Spark",
        "spark-class org.apache.spark.deploy.master.Master --host head --port 7077": (
            "it needs a cluster"
        ),
        "spark-class org.apache.spark.deploy.worker.Worker --cores 2 --memory 8g"
        " spark://head:7077": ("it needs a cluster"),
        "verix-anon anonymize job/submission --engine spark --out job/delivery --spark"
        " spark.master=spark://head:7077 --spark spark.executor.memory=4g": "it needs a cluster",
    },
    "docs/guide.md": {
        ".venv/bin/pip install -c constraints.txt -e '.[report]'": "it needs a network"
    },
    "docs/how-to/install.md": {
        "pipx install '.[owner]'": "it needs a network",
        "uv tool install '.[owner]'": "it needs a network",
        "pipx install 'verix_anon-0.3.0-py3-none-any.whl[owner]'": "it needs a network",
        "verix-anon --install-completion": "it changes the shell's own files",
        "verix-anon desk --install": "it writes to the desktop",
    },
    "docs/how-to/formats.md": {
        ".venv/bin/pip install -c constraints.txt -e '.[excel,sql]'": "it needs a network"
    },
    "docs/how-to/service.md": {
        ".venv/bin/pip install -c constraints.txt -e '.[service,s3]'": "it needs a network",
        **dict.fromkeys(
            (
                "sudo useradd --system --home-dir /var/lib/verix-anon verix-anon",
                "sudo install -d -m 0700 /etc/verix-anon",
                "sudo /opt/verix-anon/.venv/bin/verix-anon keys new /etc/verix-anon/receipts.key",
                "sudo install deploy/verix-anon.service /etc/systemd/system/",
                "sudo systemctl enable --now verix-anon",
                "sudo chown 10001 deploy/receipts.key",
            ),
            "it changes the system",
        ),
        "podman compose -f deploy/compose.yaml up -d": "it needs a network",
        "podman compose -f deploy/compose.yaml exec service verix-anon token create acme"
        " --folder /var/lib/verix-anon": "it needs the containers",
        ".venv/bin/pytest -q tests/deploy/test_nginx.py": "it needs nginx",
        "export VERIX_DATABASE='postgresql://verix:PASSWORD@db.example.org/verix'": (
            "it needs a PostgreSQL"
        ),
    },
    "README.md": {
        "pip install .": "it needs a network",
        "verix-anon run people.csv --roles roles.toml --out another --url https://host": (
            "it needs a provider"
        ),
    },
    "docs/tutorial/owner.md": {". .venv/bin/activate": "the tests run inside it"},
    "docs/tutorial/python.md": {
        "pip install jupyterlab": "it is your choice of an editor",
        "PYTHONPATH=$PWD jupyter lab docs/notebooks": "it waits for a person",
    },
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_run(path: Path) -> bool:
    return any(b.language in RUN for b in blocks(path.read_text(encoding="utf-8")))


# The first pages that a newcomer follows run with every change, the others before a release.
FIRST = {"README.md", "docs/tutorial/owner.md"}
RUN_PAGES = [
    pytest.param(path, marks=() if name_of(path) in FIRST else pytest.mark.long)
    for path in pages()
    if is_run(path)
]


@pytest.fixture(scope="session")
def supplies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages may be given: a table, a job on it that came back, the example of a provider."""
    folder = tmp_path_factory.mktemp("supplies")
    shutil.copy(ROOT / "examples" / "provider.py", folder)
    pyarrow.csv.write_csv(census(2_000), folder / "people.csv")
    table = read_table(folder / "people.csv")
    prepared = verix_anon.prepare(table, target="income", positive=">50K", quasi="all", k=5)
    (folder / "job").mkdir()
    write_submission(prepared.submission, folder / "job" / "submission")
    write_manifest(prepared.manifest, folder / "job" / "manifest.verix")
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    write_delivery(delivery, folder / "job" / "delivery")
    verdict = verix_anon.verify(
        folder / "job" / "delivery", prepared.manifest, submission=prepared.submission
    )
    (folder / "job" / "verdict.json").write_text(verdict.to_json(), encoding="utf-8")
    return folder


@contextmanager
def service(folder: Path, place: Path) -> Iterator[None]:
    """A provider's service: its URL in a variable, a token and its public key in the folder."""
    place.mkdir()
    write_key(new_key(), place / "key")
    with running(place / "data", "--key-file", str(place / "key")) as found:
        (folder / "token").write_text(found.token() + "\n")
        shutil.copy(place / "key.pub", folder / "provider.pub")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VERIX_URL", found.url)
            yield


@pytest.mark.usefixtures("quick_models")
@pytest.mark.parametrize("path", RUN_PAGES, ids=name_of)
def test_page_runs(
    path: Path, supplies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    text = path.read_text(encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    names = given(text)
    with service(folder, tmp_path / "service") if "service" in names else nullcontext():
        run_page(path, text, [name for name in names if name != "service"], supplies, folder)


def run_page(path: Path, text: str, names: list[str], supplies: Path, folder: Path) -> None:
    for name in names:
        source = supplies / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    page = Page(path, folder)
    for block in blocks(text):
        page.run(block)
    assert page.by_hand == BY_HAND.get(name_of(path), {})


def test_by_hand_names_pages_that_exist() -> None:
    assert set(BY_HAND) <= {name_of(path) for path in pages()}


def wrong(path: Path, link: str) -> str | None:
    """Say what is wrong with a link of a page, or None if it leads somewhere."""
    if re.match(r"https?:", link):
        return None
    target, _, anchor = link.partition("#")
    found = (path.parent / target).resolve() if target else path
    if not found.exists():
        return "leads nowhere"
    if found != ROOT and ROOT not in found.parents:
        return "leads out of the repository"
    is_page = anchor and found.suffix == ".md"
    if is_page and anchor not in anchors(found.read_text(encoding="utf-8")):
        return "no such heading"
    return None


def test_links_lead_somewhere() -> None:
    astray = [
        f"{name_of(path)}: {link}: {reason}"
        for path in pages()
        for link in links(path.read_text(encoding="utf-8"))
        if (reason := wrong(path, link))
    ]
    assert not astray


def test_blocks_say_their_language() -> None:
    for path in pages():
        for block in blocks(path.read_text(encoding="utf-8")):
            assert block.language, f"{name_of(path)}:{block.line} has no language"


@pytest.mark.parametrize(
    ("shown", "printed", "loosely", "agree"),
    [
        ("a 1,351 b\n", "a 7 b\n", False, True),
        ("a\n...\nz", "a\nb\nc\nz\n", False, True),
        ("a ... z", "a b c z\n", False, True),
        ("a\nz", "a\nb\nz\n", False, False),
        ("pass", "fail\n", False, False),
        ("splits fail decides 12 x", "y\nsplits fail decides 3 z\n", True, True),
        ("splits pass decides 12 x", "splits fail decides 12 x\n", True, False),
    ],
)
def test_agreement(shown: str, printed: str, loosely: bool, agree: bool) -> None:
    assert agrees(shown, printed, loosely=loosely) is agree
