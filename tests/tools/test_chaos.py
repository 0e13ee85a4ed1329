"""The service under faults, for a minute: nothing is lost, and nothing false is delivered."""

import pytest

from tools.chaos import __main__ as chaos
from tools.chaos.faults import FAULTS, disk_full
from tools.postgres import program

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(program("initdb") is None, reason="there is no PostgreSQL"),
]


def test_every_fault_once() -> None:
    found = chaos.run(0.5, seed=1, n_clients=5)
    assert found["lost"] == found["false_receipts"] == found["wrong_bytes"] == []
    assert found["submitted"] == found["delivered"] + sum(found["refused"].values()) > 0
    assert found["delivered"] > 0
    # Only root may mount the small disk that is filled.
    made = {FAULTS[name] for name in found["faults"]}
    assert made >= set(FAULTS.values()) - {disk_full}
    assert all(each["times"] > 0 for each in found["faults"].values())
    assert found["tracebacks"] == []
    assert chaos.held(found)
    page = "\n".join(chaos.render(found))
    assert "| lost | 0 |" in page
    assert "| the store hangs | " in page
