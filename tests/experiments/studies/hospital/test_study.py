"""The hospital: shares of groups that a cell leaves possible, and the errors of counts."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from experiments.studies.hospital import study


def test_a_row_is_shared_over_the_groups_of_its_cell() -> None:
    seen = pa.table(
        {
            "Geburtsdatum_min": [date(1940, 1, 1), date(1935, 1, 1), None],
            "Geburtsdatum_max": [date(1949, 12, 31), date(1944, 12, 31), None],
            "Geschlecht": [["1"], ["1", "2"], ["9"]],
        }
    )
    born, sex = study._shares(seen)
    assert born[0].tolist() == [0.0, 1.0, *[0.0] * 8]
    assert born[1, :2] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert born[2].sum() == 0
    assert sex.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]]


def test_groupby_has_only_rows_whose_cell_lies_in_one_group() -> None:
    raw = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [1.0]])
    seen = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0], [1.0]])
    found = {(e["how"], e["what"]): (e["mean"], e["most"]) for e in study._errors(raw, seen)}
    assert found["groupby", "ten years"] == (0.5, 1.0)
    assert found["shared", "ten years"] == (0.5, 0.5)
