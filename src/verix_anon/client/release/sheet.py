"""The privacy sheet: what was measured on one release, in numbers and in words (spec §12)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from verix_anon.client import aggregates
from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.release.privacy import Attribute, Diversity, Members, singled_out
from verix_anon.client.table.diversity import Asked
from verix_anon.client.table.roles import Missing

__all__ = ["FORMAT", "Conditions", "Joining", "Sheet"]

FORMAT = "verix/sheet/2"
"""Of a sheet as a JSON file."""
POPULATION = "the table itself: the intruder knows no larger population"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a release was held to."""

    k_agreed: int
    enforced: Asked
    """What else every class had to hide, by column: l, cap, t."""
    counted_by: str
    """The person column, or `record`."""
    released_before: int | None
    """How often this table was released before; None if no ledger was asked."""
    missing: Mapping[str, int]
    """How many values of each quasi-identifier were missing; those without are not named."""
    missing_as: str
    """What was done with them: `mark` or `impute`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What it cost to reach that from the delivered leaves without their traps."""

    records: int
    """Records in classes of several leaves."""
    largest_class: int
    """Records of the largest such class, 0 if there is none."""
    ncp_before: float
    """Information lost by the leaves; both before rounding and top-coding."""
    ncp_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet(Conditions):
    """What was enforced and measured on one release."""

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
    joined: Joining
    singled_out: float
    """Share of the records whose kept and sensitive values nobody else in their class has."""
    singled_out_by: Mapping[str, float]
    """The same for each such column alone."""

    @classmethod
    def of(
        cls,
        members: Members,
        attributes: Sequence[Attribute],
        conditions: Conditions,
        joined: Joining,
        ncp: float,
    ) -> "Sheet":
        """Measure; `attributes` are the target, if any, and the kept and sensitive columns."""
        sizes = members.sizes()
        unsent = [a for a in attributes if a.role != "target"]
        mean_risk = float(members.n_classes / sizes.sum())
        return cls(
            k_agreed=conditions.k_agreed,
            enforced=conditions.enforced,
            counted_by=conditions.counted_by,
            released_before=conditions.released_before,
            missing=conditions.missing,
            missing_as=conditions.missing_as,
            k=int(sizes.min()),
            n_records=len(members.class_of_row),
            n_classes=members.n_classes,
            average_class_size=float(sizes.mean()),
            largest_class=int(sizes.max()),
            class_sizes=aggregates.size_histogram(sizes, conditions.k_agreed),
            diversity=tuple(Diversity.of(members, a) for a in attributes if a.role != "kept"),
            prosecutor_max=float(1 / sizes.min()),
            prosecutor_mean=mean_risk,
            journalist_max=float(1 / sizes.min()),
            journalist_mean=mean_risk,
            population=POPULATION,
            # Exact: there are fewer than 2^32 records.
            discernibility=int((sizes.astype(np.uint64) ** 2).sum()),
            ncp=ncp,
            joined=joined,
            singled_out=singled_out(members, unsent) if unsent else 0.0,
            singled_out_by={a.name: singled_out(members, [a]) for a in unsent},
        )

    @property
    def same_target(self) -> float:
        """Share of the records in classes where all share the target; 0 without a target."""
        return sum(d.given_away for d in self.diversity if d.role == "target")

    @property
    def unmet(self) -> tuple[str, ...]:
        """What was to be enforced and does not hold of what is published."""
        found = []
        for d in self.diversity:
            for measure, asked in self.enforced.get(d.column, {}).items():
                is_met, reached = d.meets(measure, asked)
                if not is_met:
                    found.append(
                        f"{measure} of column {d.column!r} is {reached:.3g}, not {asked:g}"
                    )
        return tuple(found)

    @property
    def giveaways(self) -> tuple[str, ...]:
        """The columns that some classes give away, each with the share and what prevents it."""
        found = []
        for d in sorted(self.diversity, key=lambda d: d.role != "target"):
            if d.given_away:
                is_target = d.role == "target"
                what = "the target" if is_target else f"the value of {d.column!r}"
                found.append(
                    f"{d.given_away:.1%} of the records lie in classes where all share {what}:"
                    " whoever knows the quasi-identifiers knows it, even if the column is"
                    f" withheld; --l {'2' if is_target else f'{d.column}=2'} prevents it"
                )
        return tuple(found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the owner should know before publishing, each with its measured share."""
        found = [*self.giveaways]
        if self.singled_out:
            worst = max(self.singled_out_by, key=lambda name: self.singled_out_by[name])
            found.append(
                f"{self.singled_out:.1%} of the records are singled out within their class by"
                f" their kept and sensitive values; the most telling column alone is {worst!r}"
                f" ({self.singled_out_by[worst]:.1%})"
            )
        if self.missing and self.missing_as == Missing.IMPUTE:
            found.append(
                f"{sum(self.missing.values()):,} missing values were imputed and are published as"
                " if they had been observed; prepare with missing = 'mark' to have it said instead"
            )
        if self.released_before:
            found.append(
                f"this table was released {self.released_before:,} time(s) before: two releases"
                " laid over each other single people out"
            )
        return tuple(found)

    def facts(self) -> dict[str, str]:
        """The sheet in words."""
        asked = [
            f"{name}: {', '.join(f'{m} {value:g}' for m, value in measures.items())}"
            for name, measures in self.enforced.items()
        ]
        joined = self.joined
        return {
            "enforced": "; ".join([f"k {self.k_agreed:,}", *asked]),
            "k reached": f"{self.k:,} (agreed {self.k_agreed:,}), counted by {self.counted_by}",
            "classes": f"{self.n_classes:,} of {self.n_records:,} records, on average"
            f" {self.average_class_size:.1f}, the largest {self.largest_class:,}",
            "missing values": self._missing(),
            **{
                f"{d.column} ({d.role})": f"distinct l {d.distinct_l:,},"
                f" entropy l {d.entropy_l:.2f}, one value at most {d.greatest_share:.1%},"
                f" t-closeness {d.closeness_t:.2f} ({d.distance} distance)"
                for d in self.diversity
            },
            "risk of re-identification": f"prosecutor {self.prosecutor_max:.3f} at most,"
            f" {self.prosecutor_mean:.3f} on average; journalist {self.journalist_max:.3f} and"
            f" {self.journalist_mean:.3f}",
            "information lost": f"NCP {self.ncp:.3f}, discernibility {self.discernibility:,}",
            "joined": f"{joined.records:,} records in classes of several leaves, the largest"
            f" {joined.largest_class:,}; NCP {joined.ncp_before:.3f} before,"
            f" {joined.ncp_after:.3f} after",
        }

    def _missing(self) -> str:
        if not self.missing:
            return "none in quasi-identifiers"
        counts = ", ".join(f"{name} {n:,}" for name, n in self.missing.items())
        is_marked = self.missing_as == Missing.MARK
        done = "said in every cell of their class" if is_marked else "imputed"
        return f"{counts}; {done}"

    def __repr__(self) -> str:
        return (
            f"<Sheet: k {self.k:,} (agreed {self.k_agreed:,}), {self.n_classes:,} classes of"
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
