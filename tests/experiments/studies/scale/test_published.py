"""The paper's figures on cost are those of the sizes that the study runs."""

import pytest

from experiments.studies.scale import published, study


def test_the_papers_tables_are_of_our_sizes() -> None:
    wire = published.WIRE
    assert wire["leaf map"] + wire["tree"] + wire["root"] == pytest.approx(88e6, rel=1e-6)
    assert tuple(published.VERIFY_SECONDS) == study.PAPER_SIZES
    assert tuple(published.RESOURCE_ROWS) == study.RESOURCE_ROWS
    assert tuple(published.RESOURCE_COLUMNS) == study.RESOURCE_COLUMNS
