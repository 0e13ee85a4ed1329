"""The paper's figures on utility agree with each other."""

import numpy as np
import pytest

from experiments.studies.utility import published, render, study


def test_the_papers_tables_agree_with_each_other() -> None:
    paper, sweep = published.UTILITY["adult"], published.K_SWEEP.values()
    assert np.mean([row.f1 for row in sweep]) == pytest.approx(paper.f1, abs=1e-3)
    assert np.mean([row.blind_f1 for row in sweep]) == pytest.approx(paper.blind_f1, abs=1e-3)
    for row in published.UTILITY.values():
        assert row.f1 - row.blind_f1 == pytest.approx(row.gap, abs=1.1e-3)
    assert tuple(published.K_SWEEP) == study.KS


def test_the_papers_counts_are_those_of_its_tables() -> None:
    rows = published.UTILITY.values()
    assert sum(row.p <= render.STRICT for row in rows) == 6
    assert sum(row.d >= render.LARGE for row in rows) == 6
    assert published.PAIRS.better + published.PAIRS.ties == published.PAIRS.n
    assert published.PAIRS.n == len(rows) * len(study.KS)
