"""Gates: what a release must reach, or nothing is published (spec §12)."""

from collections.abc import Callable, Mapping, Sequence

from verix_anon.client.release.sheet import Sheet
from verix_anon.client.table.diversity import Measure
from verix_anon.errors import GateError, TableError

__all__ = ["GATES", "check", "check_names", "missed", "refused"]

Reached = Callable[[Sheet], float]

AT_LEAST: Mapping[str, Reached] = {
    "k": lambda sheet: sheet.k,
    "l": lambda sheet: min(d.distinct_l for d in sheet.diversity),
}
AT_MOST: Mapping[str, Reached] = {
    "cap": lambda sheet: max(d.greatest_share for d in sheet.diversity),
    "t": lambda sheet: max(d.closeness_t for d in sheet.diversity),
    "risk": lambda sheet: sheet.prosecutor_max,
    "singled-out": lambda sheet: sheet.singled_out,
    "ncp": lambda sheet: sheet.ncp,
}
GATES = (*AT_LEAST, *AT_MOST)
"""`l`, `cap` and `t` are of the target and of every sensitive column: the worst counts."""
HIDING = frozenset(Measure)
SLACK = 1e-9


def check_names(required: Mapping[str, float]) -> None:
    """Raise TableError unless each is a gate."""
    for name in required:
        if name not in GATES:
            raise TableError(f"there is no gate {name!r}; the gates are {', '.join(GATES)}")


def missed(required: Mapping[str, float], sheet: Sheet) -> tuple[str, ...]:
    """What the release does not reach, each in a few words."""
    found = []
    for name, value in required.items():
        if name in HIDING and not sheet.diversity:
            raise TableError(f"there is no target or sensitive column to require {name} of")
        if name in AT_LEAST:
            reached, wanted = AT_LEAST[name](sheet), f"at least {value:g}"
            is_met = reached >= value
        else:
            reached, wanted = AT_MOST[name](sheet), f"at most {value:g}"
            is_met = reached <= value + SLACK
        if not is_met:
            found.append(f"{name} is {reached:.3g}, not {wanted}")
    return tuple(found)


def refused(found: Sequence[str]) -> GateError:
    """The error for what is not reached."""
    return GateError(f"nothing is published: {'; '.join(found)}")


def check(required: Mapping[str, float], sheet: Sheet) -> None:
    """Raise GateError unless the release reaches all of it."""
    if found := missed(required, sheet):
        raise refused(found)
