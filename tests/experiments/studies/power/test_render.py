"""A comparison that cannot fail does not count."""

from experiments.core.cells import Result
from experiments.core.markdown import prose
from experiments.studies.power import render


def row(audit: str, stated: float, high: float) -> Result:
    said: Result = {"audit": audit, "fraction": 0.01, "stated": stated, "high": high}
    return said | {"caught": 9, "tries": 10}


def test_only_what_may_fall_below_is_compared() -> None:
    rows = [row("all nodes", 1.0, 1.0), row("5 witnesses", 0.5, 0.6), row("a", 0.9995, 0.9)]
    text = prose(render.summary({"rows": rows})[0])
    assert "less than 99.9 % was stated. In 0 of 1, the whole" in text
    text = prose(render.summary({"rows": [*rows, row("20 witnesses", 0.8, 0.7)]})[0])
    assert "In 1 of 2, the whole" in text
    assert "(20 witnesses at 1.0 %)" in text
