"""The privacy sheet of a release, read back from the JSON that `verix-anon release` writes."""

from dataclasses import dataclass

from verix_anon.client.release.sheet import FORMAT
from verix_anon.client.report.reading import Reading, Sizes
from verix_anon.client.table.diversity import Measure
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
    greatest_share: float
    given_away: float
    asked: str
    """What was enforced, in words; empty if nothing was."""


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
    singled_out: float
    has_unsent: bool
    """Whether the release has kept or sensitive columns."""
    ncp: float
    ncp_before: float
    """Before leaves were joined."""
    n_joined: int
    diversity: tuple[Diversity, ...]
    class_sizes: Sizes | None
    warnings: tuple[str, ...]
    overridden: tuple[str, ...]

    @property
    def same_target(self) -> float | None:
        """Share of the records in classes that share the target, if there is one."""
        return next((d.given_away for d in self.diversity if d.role == "target"), None)

    @property
    def same_sensitive(self) -> float:
        """The same of the sensitive column that is worst off, 0 if there is none."""
        return max((d.given_away for d in self.diversity if d.role != "target"), default=0.0)


def read_sheet(text: str) -> SheetView:
    """Read a sheet; raises TableError if it is not one."""
    fields = _parse(text)
    found, joined, enforced = Reading(fields), fields.inner("joined"), fields.inner("enforced")
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
        singled_out=fields.number("singled_out"),
        has_unsent=bool(fields.inner("singled_out_by").values),
        ncp=fields.number("ncp"),
        ncp_before=joined.number("ncp_before"),
        n_joined=joined.whole("records", COUNTS),
        diversity=tuple(_diversity(each, enforced) for each in found.each("diversity")),
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


def _diversity(found: Reading, enforced: Fields) -> Diversity:
    name = found.fields.text("column")
    asked = enforced.inner(name) if enforced.has(name) else None
    measures = [m.value for m in Measure if asked is not None and asked.has(m)]
    return Diversity(
        column=found.line("column"),
        asked=", ".join(f"{m} {asked.number(m):g}" for m in measures) if asked else "",
        role=found.line("role"),
        distinct_l=found.fields.whole("distinct_l", COUNTS),
        entropy_l=found.fields.number("entropy_l"),
        closeness_t=found.fields.number("closeness_t"),
        greatest_share=found.fields.number("greatest_share"),
        given_away=found.fields.number("given_away"),
    )
