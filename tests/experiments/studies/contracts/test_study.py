"""Which contracts are tried, and what counts as caught."""

from experiments.core.cells import Params, Result
from experiments.core.owner import CODED
from experiments.data import NAMES
from experiments.studies.contracts import study
from experiments.studies.contracts.render import summary

PASSED = dict.fromkeys(study.LAYERS, "pass")
FAILED = PASSED | {"splits": "fail"}


def test_every_data_set_under_both_rules_and_every_kind_of_target() -> None:
    cells = study.cells(quick=False)
    assert {(c["data"], c["rule"]) for c in cells if c["target"] == "target"} == {
        (name, rule) for name in NAMES for rule in CODED
    }
    assert {c["target"] for c in cells} == set(study.KINDS)
    # The paper's rule takes two classes alone.
    others = {c["rule"] for c in cells if c["target"] != "target"}
    assert others == {"importance-spread"}


def judged(*, same: bool, full: Result, thin: Result) -> Result:
    return {"same": same, "full": full, "thin": thin, "touched": 0.0 if same else 0.5}


def test_a_delivery_that_happens_to_be_honest_is_none_to_catch() -> None:
    params: Params = {"rule": "importance-spread", "target": "", "rows": 10, "seed": 1}
    honest = judged(same=True, full=PASSED, thin=PASSED)
    runs = [
        {"honest": honest, "cut": honest},
        {"honest": honest, "cut": judged(same=False, full=FAILED, thin=PASSED)},
    ]
    found = study.summarize([({**params, "seed": i}, run) for i, run in enumerate(runs)])
    rows = {(r["target"], r["provider"]): r for r in found["rows"]}
    cut = rows["none", "cut"]
    assert rows["all", "cut"] | {"target": "none"} == cut
    assert (cut["runs"], cut["deviated"], cut["full"], cut["thin"]) == (2, 1, 1, 0)
    assert (cut["full_splits"], cut["full_replay"], cut["touched"]) == (1, 0, 0.5)
    assert (rows["none", "honest"]["runs"], rows["none", "honest"]["full"]) == (2, 0)
    assert "cut under importance-spread (1 of 1)" in summary(found)[0]
