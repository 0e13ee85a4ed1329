"""What the columns of the seven public tables are, written by hand before any guess was seen.

A truth says who holds what: people who may look somebody up know the quasi-identifiers; what they
must not learn is sensitive. Health and money are. Columns that are not named are quasi-identifiers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["PUBLIC", "Truth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The roles of a table's columns, and what else `init` may draft."""

    target: str | None
    positive: str | None = None
    identifier: str = ""
    sensitive: str = ""
    kept: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds that do not follow from the type of the column."""
    hierarchies: Mapping[str, str] = field(default_factory=dict)
    person: str | None = None

    def role(self, name: str) -> str:
        """The role of a column."""
        if name == self.target:
            return "target"
        for role in ("identifier", "sensitive", "kept"):
            if name in getattr(self, role).split():
                return role
        return "quasi"

    def with_kinds(self, kinds: Mapping[str, str]) -> "Truth":
        """The same, with more kinds."""
        return replace(self, kinds={**self.kinds, **kinds})


_DRUGS = (
    "metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide glyburide"
    " tolbutamide pioglitazone rosiglitazone acarbose miglitol troglitazone tolazamide insulin"
    " glyburide-metformin glipizide-metformin glimepiride-pioglitazone metformin-rosiglitazone"
    " metformin-pioglitazone change diabetesMed"
)
PUBLIC = {
    "adult": Truth(target="target", positive="1", sensitive="capital-gain capital-loss"),
    "bank": Truth(target="target", positive="1", sensitive="default balance"),
    # The names were taken away: who knows what x1 to x23 are would call most of them sensitive.
    "credit": Truth(target="target", positive="1"),
    "diabetes": Truth(
        target="target",
        positive="1",
        identifier="encounter_id patient_nbr",
        sensitive=f"diag_1 diag_2 diag_3 max_glu_serum A1Cresult {_DRUGS}",
        # One value throughout.
        kept="examide citoglipton",
        kinds=dict.fromkeys(
            ("admission_type_id", "discharge_disposition_id", "admission_source_id"), "categorical"
        ),
        person="patient_nbr",
    ),
    "electricity": Truth(target="target", positive="1"),
    "magic": Truth(target="target", positive="1"),
    "nomao": Truth(target="target", positive="1"),
}
