"""A kit as a folder: everything is listed, and nothing is read that is not."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tools.kit.packing import PLACE, make_kit, pack
from tools.kit.writing import VERSION, files_of
from verix_anon.conform import kit as kit_module
from verix_anon.conform.kit import PACKED, Kit, KitSize, chosen, export_kit, read_kit, unpack_kit
from verix_anon.errors import TableError


@pytest.fixture
def kit(package_kit: Kit, tmp_path: Path) -> Kit:
    return export_kit(package_kit, chosen(package_kit.cases, ["ties", "pure"]), tmp_path / "kit")


def test_the_package_holds_the_kit_that_is_made_again(package_kit: Kit, tmp_path: Path) -> None:
    """If this fails, run `python -m tools.kit --write`; a change of a case needs a new version."""
    made = make_kit(tmp_path / "kit")
    files = files_of(made.folder)
    assert files == files_of(package_kit.folder)
    others = [
        f for f in files if (made.folder / f).read_bytes() != (package_kit.folder / f).read_bytes()
    ]
    assert others == []
    assert (made.digest, made.cases) == (package_kit.digest, package_kit.cases)


def test_the_file_of_the_package_tells_nothing_of_its_maker(package_kit: Kit) -> None:
    with tarfile.open(PLACE) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == files_of(package_kit.folder)
    assert all(member.isfile() for member in members)
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {
        (0, 0, 0, "", "", 0o644)
    }


def test_nothing_is_unpacked_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / PACKED, "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    monkeypatch.setattr(kit_module, "files", lambda package: tmp_path)
    with pytest.raises(TableError, match="leads out of the kit"):
        unpack_kit(tmp_path / "kit")
    assert not (tmp_path / "outside").exists()


def test_a_kit_is_packed_alike_wherever_it_lies(kit: Kit, tmp_path: Path) -> None:
    shutil.copytree(kit.folder, tmp_path / "other", copy_function=shutil.copyfile)
    for number, folder in enumerate((kit.folder, tmp_path / "other")):
        pack(folder, tmp_path / f"{number}.tar.xz")
    assert (tmp_path / "0.tar.xz").read_bytes() == (tmp_path / "1.tar.xz").read_bytes()


def test_what_is_exported_is_read_again(kit: Kit, package_kit: Kit, tmp_path: Path) -> None:
    assert [case.id for case in kit.cases] == ["pure", "ties"]
    assert all(kit.path(case, name).is_dir() for case in kit.cases for name in case.paths)
    assert read_kit(kit.folder) == kit
    assert (kit.size, kit.version) == (KitSize.SMALL, VERSION)
    whole = export_kit(package_kit, package_kit.cases, tmp_path / "whole")
    assert (whole.digest, whole.cases) == (package_kit.digest, package_kit.cases)


def spoil_file(folder: Path) -> None:
    path = folder / "submissions" / "ties" / "contract.json"
    path.write_bytes(path.read_bytes() + b" ")


def remove_file(folder: Path) -> None:
    (folder / "deliveries" / "ties" / "nodes.parquet").unlink()


def add_file(folder: Path) -> None:
    (folder / "submissions" / "ties" / "more").touch()


def link_file(folder: Path) -> None:
    path = folder / "submissions" / "ties" / "contract.json"
    path.rename(folder.parent / "contract.json")
    path.symlink_to(folder.parent / "contract.json")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_file, "contract.json is not of the SHA-256"),
        (remove_file, "nodes.parquet is missing"),
        (add_file, "'submissions/ties/more', which kit.json does not list"),
        (link_file, "it is a link"),
    ],
)
def test_another_file_than_was_listed_is_refused(kit: Kit, spoil: object, sentence: str) -> None:
    assert callable(spoil)
    spoil(kit.folder)
    with pytest.raises(TableError, match=sentence):
        read_kit(kit.folder)


def test_a_folder_behind_a_link_is_not_shown(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (kit.folder / "submissions" / "other").symlink_to(tmp_path / "outside")
    restated(kit, **shows(listed(kit), "submissions/other"))
    with pytest.raises(TableError, match="is not listed"):
        read_kit(kit.folder)


def restated(kit: Kit, **changed: object) -> None:
    path = kit.folder / "kit.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changed}))


def listed(kit: Kit) -> dict[str, object]:
    found = json.loads((kit.folder / "kit.json").read_bytes())["cases"][0]
    assert isinstance(found, dict)
    return found


def shows(case: dict[str, object], submission: str) -> dict[str, object]:
    assert isinstance(case["paths"], dict)
    return {"cases": [{**case, "paths": {**case["paths"], "submission": submission}}]}


def test_a_list_that_is_none_is_refused(kit: Kit) -> None:
    case = listed(kit)
    place = "submissions/ties"
    paths = {"submission": place, "delivery": place, "manifest": f"{place}/contract.json"}
    judged = {**case, "kind": "cheat", "paths": paths}
    for changed, sentence in (
        ({"format": "verix/kit/9"}, "format must be"),
        ({"cases": [case, case]}, "listed twice"),
        (shows(case, "../other"), "leads out of the kit"),
        (shows(case, "/etc"), "leads out of the kit"),
        ({"cases": [{**case, "id": "../other"}]}, "id must be a word"),
        ({"cases": [{**case, "kind": "odd"}]}, "kind must be one of"),
        (shows(case, "."), "leads out of the kit"),
        (shows(case, "elsewhere"), "is not listed"),
        (shows(case, "submissions/ti"), "is not listed"),
        ({"cases": [{**case, "paths": {}}]}, "'delivery' is missing"),
        ({"cases": [{**case, "kind": "cheat"}]}, "'manifest' is missing"),
        ({"cases": [{**judged, "expected": {}}]}, "'exit' is missing"),
        ({"cases": [{**judged, "expected": {"exit": 1}}]}, "'profile' is missing"),
        ({"files": {"../../x": "0" * 64}}, "does not list|leads out of the kit"),
        ({"more": 1}, "unknown field"),
    ):
        before = (kit.folder / "kit.json").read_bytes()
        restated(kit, **changed)
        with pytest.raises(TableError, match=sentence):
            read_kit(kit.folder)
        (kit.folder / "kit.json").write_bytes(before)


def test_cases_are_chosen_by_name_or_pattern(small_kit: Kit) -> None:
    found: list[str] = [case.id for case in chosen(small_kit.cases, ["*s-paper"])]
    assert found == ["continuous-paper", "extremes-paper", "names-paper", "halves-paper"]
    with pytest.raises(TableError, match="'nonsense' fits no case"):
        chosen(small_kit.cases, ["ties", "nonsense"])
