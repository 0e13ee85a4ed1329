"""What is known of the seven public tables: size, columns, meaning, origin.

Every table has its feature columns in the order of the public file and then `target`, int8, 0 or 1.
"""

import difflib
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from verix_anon.errors import TableError

_TYPES = {"int": pa.int64(), "real": pa.float64(), "text": pa.string()}


class Layout(StrEnum):
    """How a public file names its columns."""

    ARFF = "arff"
    HEADER = "header"
    BARE = "bare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a public table comes from and how its file reads; the label is its last column."""

    url: str
    layout: Layout
    negative: tuple[str, ...]
    positive: str
    members: tuple[str, ...] = ()
    delimiter: str = ","


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One public table: what a study must know of it, and what a true copy must show."""

    name: str
    title: str
    rows: int
    positives: int
    positive: str
    licence: str
    features: str
    origin: Origin
    identifiers: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The feature columns in public order, then `target`."""
        pairs = [word.partition(":") for word in self.features.split()]
        features = [pa.field(name, _TYPES[kind or "text"]) for name, _, kind in pairs]
        return pa.schema([*features, pa.field("target", pa.int8())])


_CC_BY = "CC BY 4.0"
_UCI = "https://archive.ics.uci.edu/static/public"
_OPENML = "https://www.openml.org/data/download"
_NOMAO_NOMINAL = tuple(
    f"V{i}" for i in sorted([*range(7, 88, 8), *range(8, 89, 8), *range(92, 117, 4)])
)

_ADULT = DataSet(
    name="adult",
    title="Adult Income",
    rows=48_842,
    positives=11_687,
    positive="income above 50K",
    licence=_CC_BY,
    features=(
        "age:int workclass fnlwgt:int education education-num:int marital-status occupation "
        "relationship race sex capital-gain:int capital-loss:int hours-per-week:int native-country"
    ),
    origin=Origin(
        url=f"{_UCI}/2/adult.zip",
        layout=Layout.BARE,
        # The common release of 48,842 rows puts the test part first.
        members=("adult.test", "adult.data"),
        negative=("<=50K",),
        positive=">50K",
    ),
)

_BANK = DataSet(
    name="bank",
    title="Bank Marketing",
    rows=45_211,
    positives=5_289,
    positive="the client subscribed to a term deposit",
    licence=_CC_BY,
    features=(
        "age:int job marital education default balance:int housing loan contact day:int month "
        "duration:int campaign:int pdays:int previous:int poutcome"
    ),
    origin=Origin(
        url=f"{_UCI}/222/bank+marketing.zip",
        layout=Layout.HEADER,
        members=("bank-full.csv",),
        delimiter=";",
        negative=("no",),
        positive="yes",
    ),
)

_CREDIT = DataSet(
    name="credit",
    title="Credit Default",
    rows=30_000,
    positives=6_636,
    positive="default in the next month",
    licence=_CC_BY,
    features=" ".join(f"x{i}:int" for i in range(1, 24)),
    nominal=("x2", "x3", "x4"),
    # The original is an Excel file; this is the same table as text.
    origin=Origin(url=f"{_OPENML}/21854402", layout=Layout.ARFF, negative=("0",), positive="1"),
)

_DIABETES = DataSet(
    name="diabetes",
    title="Diabetes 130-US",
    rows=101_766,
    positives=11_357,
    positive="readmitted within 30 days",
    licence=_CC_BY,
    features=(
        "encounter_id:int patient_nbr:int race gender age weight admission_type_id:int "
        "discharge_disposition_id:int admission_source_id:int time_in_hospital:int payer_code "
        "medical_specialty num_lab_procedures:int num_procedures:int num_medications:int "
        "number_outpatient:int number_emergency:int number_inpatient:int diag_1 diag_2 diag_3 "
        "number_diagnoses:int max_glu_serum A1Cresult metformin repaglinide nateglinide "
        "chlorpropamide glimepiride acetohexamide glipizide glyburide tolbutamide pioglitazone "
        "rosiglitazone acarbose miglitol troglitazone tolazamide examide citoglipton insulin "
        "glyburide-metformin glipizide-metformin glimepiride-pioglitazone "
        "metformin-rosiglitazone metformin-pioglitazone change diabetesMed"
    ),
    identifiers=("encounter_id", "patient_nbr"),
    origin=Origin(
        url=f"{_UCI}/296/diabetes+130-us+hospitals+for+years+1999-2008.zip",
        layout=Layout.HEADER,
        members=("diabetic_data.csv",),
        negative=("NO", ">30"),
        positive="<30",
    ),
)

_ELECTRICITY = DataSet(
    name="electricity",
    title="Electricity",
    rows=45_312,
    positives=19_237,
    positive="the price goes up",
    licence="unknown",
    features=(
        "date:real day:int period:real nswprice:real nswdemand:real vicprice:real "
        "vicdemand:real transfer:real"
    ),
    nominal=("day",),
    origin=Origin(url=f"{_OPENML}/2419", layout=Layout.ARFF, negative=("DOWN",), positive="UP"),
)

_MAGIC = DataSet(
    name="magic",
    title="MagicTelescope",
    rows=19_020,
    positives=6_688,
    positive="hadron",
    licence=_CC_BY,
    features=(
        "fLength:real fWidth:real fSize:real fConc:real fConc1:real fAsym:real fM3Long:real "
        "fM3Trans:real fAlpha:real fDist:real"
    ),
    origin=Origin(
        url=f"{_UCI}/159/magic+gamma+telescope.zip",
        layout=Layout.BARE,
        members=("magic04.data",),
        negative=("g",),
        positive="h",
    ),
)

_NOMAO = DataSet(
    name="nomao",
    title="Nomao",
    rows=34_465,
    positives=9_844,
    positive="class 1",
    licence=_CC_BY,
    features=" ".join(
        f"V{i}:int" if f"V{i}" in _NOMAO_NOMINAL else f"V{i}:real" for i in range(1, 119)
    ),
    nominal=_NOMAO_NOMINAL,
    # The UCI file codes its nominal columns as letters and leaves the gaps that this one fills.
    origin=Origin(url=f"{_OPENML}/1592278", layout=Layout.ARFF, negative=("2",), positive="1"),
)

DATASETS = {
    dataset.name: dataset
    for dataset in (_ADULT, _BANK, _CREDIT, _DIABETES, _ELECTRICITY, _MAGIC, _NOMAO)
}
NAMES = tuple(DATASETS)
TITLES = {name: dataset.title for name, dataset in DATASETS.items()}
"""As in the paper."""


def describe(name: str) -> DataSet:
    """Return what is known of a public table; the error for a wrong name lists the right ones."""
    if name in DATASETS:
        return DATASETS[name]
    near = difflib.get_close_matches(name.lower(), NAMES, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise TableError(f"There is no data set {name!r}.{hint} The names are: {', '.join(NAMES)}.")
