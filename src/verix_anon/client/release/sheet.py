"""The privacy sheet: what was measured on one release, in numbers and in words (spec §12)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from verix_anon.client import aggregates
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.release.privacy import (
    Attribute,
    Diversity,
    Members,
    distribution,
    overall,
    singled_out,
)

__all__ = ["FORMAT", "Sheet"]

FORMAT = "verix/sheet/1"
"""Of a sheet as a JSON file."""
POPULATION = "the table itself: the intruder knows no larger population"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What was measured on one release."""

    counted_by: str
    """The person column, or `record`."""
    k_agreed: int
    k: int
    """The people in the smallest class."""
    n_records: int
    n_classes: int
    average_class_size: float
    largest_class: int
    class_sizes: Mapping[str, object]
    """How many classes have which number of people."""
    diversity: tuple[Diversity, ...]
    prosecutor_max: float
    """The chance to pick the right record of somebody known to be in the table."""
    prosecutor_mean: float
    journalist_max: float
    """The same for somebody who may be in the table, under `population`."""
    journalist_mean: float
    population: str
    discernibility: int
    """The sum of the squared class sizes."""
    ncp: float
    same_target: float
    """Share of the records in classes where all share the target."""
    singled_out: float
    """Share of the records whose kept and sensitive values nobody else in their class has."""
    singled_out_by: Mapping[str, float]
    """The same for each such column alone."""
    released_before: int | None
    """How often this table was released before; None if no ledger was asked."""

    @classmethod
    def of(
        cls,
        members: Members,
        attributes: Sequence[Attribute],
        spans_ncp: float,
        *,
        k: int,
        counted_by: str,
        released_before: int | None,
    ) -> "Sheet":
        """Measure; `attributes` are the target and the kept and sensitive columns."""
        sizes = members.sizes()
        joined = [a for a in attributes if a.role != "target"]
        target = next(a for a in attributes if a.role == "target")
        mean_risk = float(members.n_classes / sizes.sum())
        is_same = distribution(members, target.codes, overall(target.codes, None)).distinct() == 1
        return cls(
            counted_by=counted_by,
            k_agreed=k,
            k=int(sizes.min()),
            n_records=len(members.class_of_row),
            n_classes=members.n_classes,
            average_class_size=float(sizes.mean()),
            largest_class=int(sizes.max()),
            class_sizes=aggregates.size_histogram(sizes, k),
            diversity=tuple(Diversity.of(members, a) for a in attributes if a.role != "kept"),
            prosecutor_max=float(1 / sizes.min()),
            prosecutor_mean=mean_risk,
            journalist_max=float(1 / sizes.min()),
            journalist_mean=mean_risk,
            population=POPULATION,
            discernibility=int((sizes.astype(object) ** 2).sum()),
            ncp=spans_ncp,
            same_target=float(is_same[members.class_of_row].mean()),
            singled_out=singled_out(members, joined) if joined else 0.0,
            singled_out_by={a.name: singled_out(members, [a]) for a in joined},
            released_before=released_before,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should know before publishing, each with its measured share."""
        found = []
        if self.same_target:
            found.append(
                f"{self.same_target:.1%} of the records lie in classes where all share the"
                " target: whoever knows the quasi-identifiers knows it, even if the column is"
                " withheld"
            )
        if self.singled_out:
            worst = max(self.singled_out_by, key=lambda name: self.singled_out_by[name])
            found.append(
                f"{self.singled_out:.1%} of the records are singled out within their class by"
                f" their kept and sensitive values; the most telling column alone is {worst!r}"
                f" ({self.singled_out_by[worst]:.1%})"
            )
        if self.released_before:
            found.append(
                f"this table was released {self.released_before} time(s) before: two releases"
                " laid over each other single people out"
            )
        return tuple(found)

    def facts(self) -> dict[str, str]:
        """The sheet in words."""
        return {
            "k reached": f"{self.k:,} (agreed {self.k_agreed}), counted by {self.counted_by}",
            "classes": f"{self.n_classes:,} of {self.n_records:,} records, on average"
            f" {self.average_class_size:.1f}, the largest {self.largest_class:,}",
            **{
                f"{d.column} ({d.role})": f"distinct l {d.distinct_l}, entropy l {d.entropy_l:.2f},"
                f" t-closeness {d.closeness_t:.2f} ({d.distance} distance)"
                for d in self.diversity
            },
            "risk of re-identification": f"prosecutor {self.prosecutor_max:.3f} at most,"
            f" {self.prosecutor_mean:.3f} on average; journalist {self.journalist_max:.3f} and"
            f" {self.journalist_mean:.3f}",
            "information lost": f"NCP {self.ncp:.3f}, discernibility {self.discernibility:,}",
        }

    def __repr__(self) -> str:
        return (
            f"<Sheet: k {self.k:,} (agreed {self.k_agreed}), {self.n_classes:,} classes of"
            f" {self.n_records:,} records, {len(self.warnings)} warning(s)>"
        )

    def _repr_html_(self) -> str:
        return as_table(self.facts().items()) + as_list(self.warnings)

    def to_dict(self) -> dict[str, object]:
        """The sheet as JSON values, with its warnings."""
        return {
            "format": FORMAT,
            **asdict(self),
            "diversity": [asdict(d) for d in self.diversity],
            "singled_out_by": dict(self.singled_out_by),
            "warnings": list(self.warnings),
        }
