"""What the pages say of a claim and of a study's seeds."""

import pytest

from experiments.core.markdown import HOLDS, NOT, OPEN, seeds, verdict


@pytest.mark.parametrize(
    ("readings", "said"),
    [([True], HOLDS), ([False], NOT), ([True, True], HOLDS), ([True, False], OPEN)],
)
def test_a_claim_that_holds_under_some_readings_only_is_left_open(
    readings: list[bool], said: str
) -> None:
    assert verdict(readings) == said


def test_seeds_are_counted_in_words() -> None:
    assert seeds({"seed_values": [4]}) == "1 seed"
    assert seeds({"seed_values": [4, 9]}) == "2 seeds"
