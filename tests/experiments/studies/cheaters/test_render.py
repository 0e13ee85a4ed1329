"""A cheater that is caught less often than stated is named, if that can happen at all."""

from experiments.core.cells import Result
from experiments.core.markdown import prose
from experiments.studies.cheaters import render


def cheater(stated: float, high: float) -> Result:
    said: Result = {"provider": "cut-node", "rule": "r", "runs": 10, "deviated": 10, "thin": 3}
    return said | {"stated": stated, "high": high}


def test_a_cheater_that_is_caught_too_seldom_is_named() -> None:
    honest = cheater(0.0, 0.1) | {"provider": "honest", "deviated": 0, "thin": 0}
    text = prose(render.summary({"rows": [honest, cheater(0.4, 0.6), cheater(1.0, 1.0)]})[0])
    assert "In 1 comparisons in which" in text
    assert "no cheater was caught" in text
    text = render.summary({"rows": [honest, cheater(0.7, 0.6)]})[0]
    assert "only cut-node under r was caught" in text
