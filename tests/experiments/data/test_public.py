"""The public tables are what the catalogue says, wherever they come from."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPMessage
from pathlib import Path
from urllib.request import OpenerDirector, Request

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from experiments.data import DATASETS, NAMES, DataSet, describe, load, origins, public
from experiments.data.catalog import Layout
from verix_anon.errors import TableError


def no_fetch(url: str) -> bytes:
    raise TableError(f"no network in tests: {url}")


def local(name: str) -> pa.Table:
    """A public table, where this machine has it."""
    try:
        return load(name, fetch=no_fetch)
    except TableError as error:
        if "no network" in str(error):
            pytest.skip(f"the public table {name} is not on this machine")
        raise


def zipped(files: dict[str, bytes]) -> bytes:
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return blob.getvalue()


@pytest.fixture(params=NAMES)
def genuine(request: pytest.FixtureRequest) -> tuple[DataSet, pa.Table]:
    """A public table; to be asked for before `cache`, which hides the tables there are."""
    return describe(request.param), local(request.param)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache folder on a machine that has no table anywhere."""
    monkeypatch.delenv("VERIX_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(public, "_BESIDE", Path("no-such-folder"))
    return tmp_path / "verix-anon"


def shrink(monkeypatch: pytest.MonkeyPatch, name: str, rows: int, positives: int) -> None:
    """Make the catalogue expect a table small enough to write down here."""
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], rows=rows, positives=positives))


class TestCatalog:
    def test_names(self) -> None:
        assert " ".join(NAMES) == "adult bank credit diabetes electricity magic nomao"

    @pytest.mark.parametrize("dataset", DATASETS.values(), ids=NAMES)
    def test_columns(self, dataset: DataSet) -> None:
        schema = dataset.schema
        assert len(set(schema.names)) == len(schema.names)
        assert schema.names[-1] == "target"
        for name in dataset.identifiers + dataset.nominal:
            assert schema.field(name).type == pa.int64()
        assert dataset.origin.url.startswith("https://")

    def test_what_the_publishers_say(self) -> None:
        assert len(describe("nomao").nominal) == 29
        assert len(describe("diabetes").schema) == 50
        assert describe("diabetes").identifiers == ("encounter_id", "patient_nbr")
        assert describe("electricity").nominal == ("day",)
        assert describe("credit").nominal == ("x2", "x3", "x4")

    def test_unknown_name(self) -> None:
        with pytest.raises(TableError, match=r"Did you mean 'adult'\? The names are: adult, bank"):
            load("Adults", fetch=no_fetch)
        with pytest.raises(TableError, match=r"There is no data set 'zzz'\. The names"):
            describe("zzz")


class TestLocalFiles:
    @pytest.mark.parametrize("name", NAMES)
    def test_load(self, name: str) -> None:
        table = local(name)
        assert table.schema == describe(name).schema
        assert not table.schema.metadata
        assert table["target"].to_pylist().count(1) == describe(name).positives

    def test_folder_in_environment_then_cache(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        shrink(monkeypatch, "magic", 2, 1)
        table = pa.Table.from_pylist(
            [dict.fromkeys(describe("magic").schema.names, i) for i in (0, 1)],
            schema=describe("magic").schema,
        )
        folder = tmp_path / "given"
        folder.mkdir()
        monkeypatch.setenv("VERIX_DATA", str(folder))
        cache.mkdir()
        pq.write_table(table, cache / "magic.parquet")
        assert load("magic", fetch=no_fetch) == table
        (folder / "magic.parquet").write_bytes(b"damaged")
        with pytest.raises(TableError, match=r"magic\.parquet cannot be read as Parquet"):
            load("magic", fetch=no_fetch)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda t: t.slice(1), "has 3 rows instead of 4"),
            (lambda t: t.drop_columns(["fDist"]), r"columns differ \(fDist double\)"),
            (lambda t: t.select(t.column_names[::-1]), "their order"),
            (lambda t: t.set_column(10, "target", pa.array([1, 1, 1, 0], pa.int8())), "3 posit"),
            (lambda t: t.set_column(10, "target", pa.array([1, 1, 2, 0], pa.int8())), "2 posit"),
            (lambda t: t.set_column(10, "target", pa.array([1, 1, None, 0], pa.int8())), "2 posit"),
        ],
    )
    def test_not_the_table(
        self,
        cache: Path,
        monkeypatch: pytest.MonkeyPatch,
        change: Callable[[pa.Table], pa.Table],
        words: str,
    ) -> None:
        shrink(monkeypatch, "magic", 4, 2)
        schema = describe("magic").schema
        table = pa.Table.from_pylist([dict.fromkeys(schema.names, i % 2) for i in range(4)], schema)
        cache.mkdir()
        pq.write_table(change(table), cache / "magic.parquet")
        with pytest.raises(TableError, match=words):
            load("magic", fetch=no_fetch)


ADULT_TEST = b"""|1x3 Cross validator
25, Private, 226802, 11th, 7, Single, ?, Own-child, Black, Male, 0, 0, 40, Laos, <=50K.
44, Private, 160323, Some-college, 10, Married, Sales, Husband, Black, Male, 7688, 0, 40, ?, >50K.

"""
ADULT_DATA = b"""\
39, ?, 77516, Bachelors, 13, Single, Sales, Wife, White, Female, 0, 0, 40, Cuba, <=50K

"""
ADULT = zipped({"Index": b"...", "adult.data": ADULT_DATA, "adult.test": ADULT_TEST})
BANK_FULL = b"""\
"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";\
"duration";"campaign";"pdays";"previous";"poutcome";"y"\r
58;"manager";"married";"tertiary";"no";2143;"yes";"no";"unknown";5;"may";261;1;-1;0;"other";"no"\r
44;"technician";"single";"unknown";"no";29;"yes";"no";"unknown";5;"may";151;1;-1;0;"other";"yes"\r
"""
BANK = zipped(
    {
        "bank-additional.zip": zipped({"bank-additional/bank-additional.csv": b""}),
        "bank.zip": zipped({"bank-full.csv": BANK_FULL}),
    }
)
ELECTRICITY = b"""% a remark
@relation electricity
@attribute date real
@attribute day {1,2,3,4,5,6,7}
@ATTRIBUTE 'period' real
@attribute nswprice real
@attribute nswdemand real
@attribute vicprice real
@attribute vicdemand real
@attribute transfer real
@attribute class {UP, DOWN}

@data
0,2,0,0.056443,0.439155,0.003467,0.422915,0.414912,UP
0,2,0.021277,0.051699,0.415055,0.003467,0.422915,0.414912,DOWN
"""


class TestDownload:
    def test_adult(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shrink(monkeypatch, "adult", 3, 1)
        table = load("adult", fetch=lambda url: ADULT)
        assert table["age"].to_pylist() == [25, 44, 39]
        assert table["workclass"].to_pylist() == ["Private", "Private", None]
        assert table["occupation"].to_pylist() == [None, "Sales", "Sales"]
        assert table["native-country"].to_pylist() == ["Laos", None, "Cuba"]
        assert table["target"].to_pylist() == [0, 1, 0]
        assert [path.name for path in cache.iterdir()] == ["adult.parquet"]
        assert load("adult", fetch=no_fetch) == table

    def test_bank(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shrink(monkeypatch, "bank", 2, 1)
        table = load("bank", fetch=lambda url: BANK)
        assert table["job"].to_pylist() == ["manager", "technician"]
        assert table["pdays"].to_pylist() == [-1, -1]
        assert table["target"].to_pylist() == [0, 1]

    def test_electricity(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shrink(monkeypatch, "electricity", 2, 1)
        table = load("electricity", fetch=lambda url: ELECTRICITY)
        assert table["day"].to_pylist() == [2, 2]
        assert table["period"].to_pylist() == [0.0, 0.021277]
        assert table["target"].to_pylist() == [1, 0]

    def test_public_format_reads_back(self, genuine: tuple[DataSet, pa.Table], cache: Path) -> None:
        dataset, table = genuine
        fetched: list[str] = []

        def fetch(url: str) -> bytes:
            fetched.append(url)
            return publish(table, dataset)

        assert load(dataset.name, fetch=fetch) == table
        assert load(dataset.name, fetch=no_fetch) == table
        assert fetched == [dataset.origin.url]

    @pytest.mark.parametrize(
        ("name", "blob", "words"),
        [
            ("adult", ADULT, "What https.*adult.zip sends is not .*: it has 3 rows instead of 2"),
            ("adult", b"<html>", "not a zip archive"),
            ("adult", ADULT[:-30], "not a zip archive"),
            ("adult", zipped({"adult.data": ADULT_DATA}), "lacks adult.test"),
            ("adult", ADULT.replace(b"adult.test", b"adult.xxxx"), "lacks adult.test"),
            ("bank", BANK, "it has 1 positives, not 2"),
            ("bank", zipped({"bank-full.csv": b"a;y\n1;no\n"}), "lacks age, job"),
            ("electricity", b"<html>not found</html>", "no ARFF data section"),
            ("electricity", ELECTRICITY.replace(b"vicprice", b"vic"), "lacks vicprice"),
            ("electricity", ELECTRICITY.replace(b"vicprice", b"day"), "lacks day, vicprice"),
            ("electricity", ELECTRICITY.replace(b"DOWN\n", b"LEFT\n"), "unknown labels: LEFT"),
            ("electricity", ELECTRICITY.replace(b"0.4", b"abc"), "does not read"),
            ("electricity", ELECTRICITY.replace(b"0,2,", b"0,2.5,"), "does not read"),
            ("electricity", ELECTRICITY.replace(b",UP", b""), "does not read"),
            ("electricity", ELECTRICITY.replace(b"UP", b"\xff"), "does not read"),
        ],
    )  # fmt: skip
    def test_changed_origin(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, blob: bytes, words: str
    ) -> None:
        shrink(monkeypatch, name, 2, 2)
        with pytest.raises(TableError, match=words):
            load(name, fetch=lambda url: blob)
        assert not cache.exists()

    def test_member_too_large(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(origins, "_MAX_BYTES", 100)
        with pytest.raises(TableError, match=r"adult\.test in the archive is over 100 bytes"):
            load("adult", fetch=lambda url: ADULT)

    def test_cache_that_cannot_be_written(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shrink(monkeypatch, "electricity", 2, 1)
        cache.write_bytes(b"a file where the folder should be")
        assert load("electricity", fetch=lambda url: ELECTRICITY).num_rows == 2


def publish(table: pa.Table, dataset: DataSet) -> bytes:
    """Write a table the way its publisher does."""
    origin = dataset.origin
    names = table.column_names[:-1]
    strings = [table[name].cast(pa.string()).fill_null(pa.scalar("?")) for name in names]
    target = table["target"].to_pylist()
    labels = pa.array([origin.positive if value else origin.negative[0] for value in target])
    body = io.BytesIO()
    options = csv.WriteOptions(
        include_header=False, delimiter=origin.delimiter, quoting_style="none"
    )
    csv.write_csv(pa.table([*strings, labels], [*names, "label"]), body, options)
    text = body.getvalue()
    if origin.layout is Layout.ARFF:
        heads = "".join(f"@attribute {name} real\n" for name in [*names, "label"])
        return f"@relation made\n{heads}@data\n".encode() + text
    if origin.layout is Layout.HEADER:
        text = origin.delimiter.join([*names, "label"]).encode() + b"\n" + text
        return zipped({"folder/" + origin.members[0]: text})
    rows = text.splitlines(keepends=True)
    parts = [rows[:16_281], rows[16_281:]] if len(origin.members) == 2 else [rows]
    return zipped({m: b"".join(part) for m, part in zip(origin.members, parts, strict=True)})


class TestFetch:
    URL = "https://example.org/table.zip"

    def serve(self, monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception) -> None:
        """Let every request get this answer."""

        def open_(opener: OpenerDirector, request: Request, timeout: float) -> io.BytesIO:
            assert timeout > 0
            if isinstance(answer, Exception):
                raise answer
            return io.BytesIO(answer)

        monkeypatch.setattr(OpenerDirector, "open", open_)

    def test_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.serve(monkeypatch, b"x" * 200_000)
        assert origins.fetch_https(self.URL) == b"x" * 200_000

    def test_timeout(self, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
        self.serve(monkeypatch, TimeoutError("timed out"))
        with pytest.raises(TableError, match=r"Cannot download https://.*adult\.zip: timed out"):
            load("adult")

    def test_oversize(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(origins, "_MAX_BYTES", 10)
        self.serve(monkeypatch, b"x" * 11)
        with pytest.raises(TableError, match="sends more than 10 bytes"):
            origins.fetch_https(self.URL)

    def test_trickle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(origins, "_TOTAL_SECONDS", -1)
        self.serve(monkeypatch, b"x")
        with pytest.raises(TableError, match="took more than"):
            origins.fetch_https(self.URL)

    def test_https_only(self) -> None:
        with pytest.raises(TableError, match="https only"):
            origins.fetch_https("http://example.org/table.zip")
        answer = (Request(self.URL), io.BytesIO(), 302, "", HTTPMessage())
        with pytest.raises(TableError, match="https only"):
            origins._HttpsOnly().redirect_request(*answer, "http://example.org/")
