"""Claims on utility are judged under every reading of what the paper leaves open."""

from experiments.core.cells import Result
from experiments.core.markdown import HOLDS, NOT, OPEN
from experiments.studies.utility import render

DATA = ("adult", "bank", "credit", "diabetes", "electricity", "magic", "nomao")


def one(gap: float) -> Result:
    return {"gap": gap, "p": 0.001, "p_adjusted": 0.001, "d": 9 * gap}


def found(gaps: dict[tuple[str, str], float], ties: int) -> Result:
    """The same gap on every data set, and so many ties where it is above 0."""
    single: Result = {"blind": {}, "strict": {}}
    pooled: Result = {"blind": {}, "strict": {}}
    for (contrast, measure), gap in gaps.items():
        single[contrast][measure] = {name: one(gap) for name in DATA}
        better = 77 - ties if gap > 0 else 0
        pooled[contrast][measure] = {"positive": better, "ties": ties, "n": 77}
    for of in single.values():
        of["distance"] = {name: one(0.1) for name in DATA}
    return {"datasets": list(DATA), "single": single, "pooled": pooled}


def test_a_claim_holds_if_it_does_under_every_reading() -> None:
    always = dict.fromkeys(render.READINGS, 0.1)
    assert {c.verdict for c in render.claims(found(always, ties=6))} == {HOLDS}


def test_a_claim_is_left_open_if_it_holds_under_some_readings() -> None:
    some = dict.fromkeys(render.READINGS, 0.1) | {("blind", "f1"): -0.1}
    pairs, significant, large, distance = render.claims(found(some, ties=6))
    assert {pairs.verdict, significant.verdict, large.verdict} == {OPEN}
    assert "6, 77, 77 and 77 of 77 pairs" in pairs.found
    assert distance.verdict == HOLDS


def test_a_claim_does_not_hold_if_it_does_under_no_reading() -> None:
    never = dict.fromkeys(render.READINGS, -0.1)
    said = [c.verdict for c in render.claims(found(never, ties=6))]
    assert said == [NOT, NOT, NOT, HOLDS]
