"""What a layer takes is its own: what is compiled on a first run is not booked on it."""

import time

import pytest

from tools import cases
from verix_anon.client import verify
from verix_anon.client.verdict import LAYERS, Profile
from verix_anon.client.verify import splits
from verix_anon.client.verify.case import Case, VerifyOptions
from verix_anon.progress import compiling

SLOW = 0.2


def test_compiling_is_not_booked_on_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = cases.prepared()
    check = splits.check

    def slow(case: Case) -> object:
        compiling.begin()
        time.sleep(SLOW)
        compiling.end()
        return check(case)

    monkeypatch.setattr(splits, "check", slow)
    told: list[tuple[str, int, int]] = []
    case = Case(
        delivery=cases.honest(prepared.submission),
        manifest=prepared.manifest,
        submission=prepared.submission,
        options=VerifyOptions(
            skip=("fingerprint", "utility"), progress=lambda *said: told.append(said)
        ),
    )
    began = time.perf_counter()
    found = {finding.layer: finding for finding in verify.run(case, Profile.FULL)}
    assert found["splits"].status.value == "pass"
    assert found["splits"].seconds <= time.perf_counter() - began - SLOW
    assert told[-1] == ("layers", len(LAYERS), len(LAYERS))
