"""The privacy sheet of a release, read back from the JSON that `verix-anon release` writes."""

from dataclasses import dataclass

from verix_anon.client.release.sheet import FORMAT
from verix_anon.client.report.reading import Reading, Sizes
from verix_anon.errors import TableError
from verix_anon.fields import Fields

__all__ = ["SheetView", "read_sheet"]

COUNTS = range(2**63)


@dataclass(frozen=True, slots=True)
class Diversity:
    """How much the worst class hides of one column."""

    column: str
    role: str
    distinct_l: int
    entropy_l: float
    closeness_t: float


@dataclass(frozen=True, slots=True)
class SheetView:
    """What a report shows of a privacy sheet."""

    root: str
    k: int
    k_agreed: int
    counted_by: str
    n_records: int
    n_classes: int
    average: float
    largest: int
    risk_max: float
    risk_mean: float
    same_target: float
    singled_out: float
    ncp: float
    diversity: tuple[Diversity, ...]
    class_sizes: Sizes | None
    warnings: tuple[str, ...]
    overridden: tuple[str, ...]


def read_sheet(text: str) -> SheetView:
    """Read a sheet; raises TableError if it is not one."""
    fields = _parse(text)
    found = Reading(fields)
    return SheetView(
        root=found.line("root"),
        k=fields.whole("k", COUNTS),
        k_agreed=fields.whole("k_agreed", COUNTS),
        counted_by=found.line("counted_by"),
        n_records=fields.whole("n_records", COUNTS),
        n_classes=fields.whole("n_classes", COUNTS),
        average=fields.number("average_class_size"),
        largest=fields.whole("largest_class", COUNTS),
        risk_max=fields.number("prosecutor_max"),
        risk_mean=fields.number("prosecutor_mean"),
        same_target=fields.number("same_target"),
        singled_out=fields.number("singled_out"),
        ncp=fields.number("ncp"),
        diversity=tuple(_diversity(each) for each in found.each("diversity")),
        class_sizes=found.sizes("class_sizes"),
        warnings=tuple(found.lines("warnings", 20)),
        overridden=tuple(found.lines("overridden", 20)),
    )


def _parse(text: str) -> Fields:
    try:
        fields = Fields.parse(text, "the privacy sheet", TableError)
        fields.expect("format", FORMAT)
    except TableError as error:
        raise TableError(
            f"this is not a privacy sheet ({error}); write one with"
            " verix-anon release --sheet FILE, or print it with --json"
        ) from None
    return fields


def _diversity(found: Reading) -> Diversity:
    return Diversity(
        column=found.line("column"),
        role=found.line("role"),
        distinct_l=found.fields.whole("distinct_l", COUNTS),
        entropy_l=found.fields.number("entropy_l"),
        closeness_t=found.fields.number("closeness_t"),
    )
