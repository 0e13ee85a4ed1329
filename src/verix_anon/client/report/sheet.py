"""The privacy sheet of a release, read back from the JSON that `verix-anon release` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from verix_anon.client.release.privacy import FORMAT
from verix_anon.client.report.reading import Reading, Sizes, clean
from verix_anon.errors import TableError

__all__ = ["SheetView", "read_sheet"]

Value = TypeVar("Value", int, float)


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
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise TableError(
            f"this is not a privacy sheet of the format {FORMAT!r}; write one with"
            " verix-anon release --sheet FILE, or print it with --json"
        )
    found = Reading("the privacy sheet", document)
    return SheetView(
        root=clean(document.get("root")),
        k=_count(found, "k"),
        k_agreed=_count(found, "k_agreed"),
        counted_by=clean(document.get("counted_by")),
        n_records=_count(found, "n_records"),
        n_classes=_count(found, "n_classes"),
        average=_number(found, "average_class_size"),
        largest=_count(found, "largest_class"),
        risk_max=_number(found, "prosecutor_max"),
        risk_mean=_number(found, "prosecutor_mean"),
        same_target=_number(found, "same_target"),
        singled_out=_number(found, "singled_out"),
        ncp=_number(found, "ncp"),
        diversity=tuple(_diversity(each) for each in found.mappings("diversity")),
        class_sizes=found.sizes("class_sizes"),
        warnings=tuple(found.lines("warnings", 20)),
        overridden=tuple(found.lines("overridden", 20)),
    )


def _diversity(found: Reading) -> Diversity:
    return Diversity(
        column=clean(found.values.get("column")),
        role=clean(found.values.get("role")),
        distinct_l=_count(found, "distinct_l"),
        entropy_l=_number(found, "entropy_l"),
        closeness_t=_number(found, "closeness_t"),
    )


def _count(found: Reading, key: str) -> int:
    return _there(found.count(key), key)


def _number(found: Reading, key: str) -> float:
    return _there(found.number(key), key)


def _there(value: Value | None, key: str) -> Value:
    if value is None:
        raise TableError(f"the privacy sheet has no {key!r}")
    return value
