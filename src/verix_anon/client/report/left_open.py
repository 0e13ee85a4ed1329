"""What the release leaves open, in figures as large as the verdict: all from its sheet."""

from dataclasses import dataclass

from verix_anon.client.report.sheet import SheetView
from verix_anon.client.verdict import Verdict

__all__ = ["LeftOpen", "Point", "left_open", "share"]

UNKNOWN = (
    "No privacy sheet came with this verdict: either nothing was released yet, or this report was"
    " not told. Nothing on this page says how many records a released table singles out, gives the"
    " target of, or joins."
)
REFUSED = "Nothing made from this delivery should be released."


@dataclass(frozen=True, slots=True)
class Point:
    """One figure, and the rest of its sentence."""

    figure: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.figure} {self.meaning}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """The second half of the head."""

    tone: str
    points: tuple[Point, ...] = ()
    note: str = ""


def share(value: float) -> str:
    """A share of the records; a little is never shown as nothing, nor nearly all as all."""
    if 0 < value < 0.001:
        return "under 0.1%"
    return "over 99.9%" if 0.999 < value < 1 else f"{value:.1%}"


def left_open(verdict: Verdict, sheet: SheetView | None) -> LeftOpen:
    """What a reader must know of the release before anything else."""
    if sheet is None:
        return LeftOpen(tone="quiet", note=UNKNOWN if verdict else f"{UNKNOWN} {REFUSED}")
    is_open = sheet.singled_out or sheet.same_target or sheet.same_sensitive
    return LeftOpen(
        tone="mark" if is_open or sheet.overridden else "good",
        points=(_singled_out(sheet), *_given_away(sheet), _joined(sheet)),
    )


def _singled_out(sheet: SheetView) -> Point:
    by = "within their class by kept and sensitive columns"
    none = "" if sheet.has_unsent else ": there are none"
    return Point(share(sheet.singled_out), f"of the records are singled out {by}{none}")


def _given_away(sheet: SheetView) -> list[Point]:
    lie = "of the records lie in classes that give"
    found = [Point("No target", "that a class could give away")]
    if sheet.same_target is not None:
        found = [Point(share(sheet.same_target), f"{lie} the target away")]
    if sheet.same_sensitive:
        found.append(Point(share(sheet.same_sensitive), f"{lie} the worst sensitive column away"))
    return found


def _joined(sheet: SheetView) -> Point:
    return Point(
        f"{sheet.n_joined:,}",
        f"of {sheet.n_records:,} records are in classes joined of several groups",
    )
