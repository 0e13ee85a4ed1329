"""The paper's tables agree with its totals."""

from experiments.data import TITLES
from experiments.studies.detection import published


def test_published_tables_agree_with_the_papers_totals() -> None:
    cells = [(p, d) for p in published.PROFILES for d in TITLES]
    correct = [published.is_correct("overall", p, d) for p, d in cells]
    assert (len(cells), sum(correct)) == (28, 27)
    fixed = [
        published.GLOBAL_EXCEPTIONS.get(cell, right)
        for cell, right in zip(cells, correct, strict=True)
    ]
    assert sum(fixed) == published.PERFORMANCE["fixed"][0]
    for layers, name in (
        (("L1",), "hash only (paper's layer 1)"),
        (("L3",), "SHAP only, calibrated"),
    ):
        right = sum(all(published.is_correct(layer, p, d) for layer in layers) for p, d in cells)
        assert right == published.BASELINES[name]
