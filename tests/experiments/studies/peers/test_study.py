"""Peers may be absent, slow or broken; their classes are read off what they publish."""

import subprocess

import numpy as np
import pyarrow as pa
import pytest

from experiments.core.cells import Params, Result
from experiments.studies.peers import render
from experiments.studies.peers import study as peers


def test_peers_that_are_absent_slow_or_broken_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params: dict[str, str | int | float] = {
        "tool": "anonypy", "k": 5, "l": 1, "suppress": 0.0, "rows": 300, "limit": 1, "tools": "",
        "checker": "",
    }  # fmt: skip
    assert peers.run(params) == {"outcome": "absent"}

    def stop(words: object, limit: int) -> Result:
        raise subprocess.TimeoutExpired("peer", limit)

    def fail(words: object, limit: int) -> Result:
        raise subprocess.CalledProcessError(1, "peer", stderr="Traceback\nNameError: gone\n")

    sample = peers._Sample(
        pa.table({"age": [1]}), np.zeros((1, 1)), np.zeros(1, np.uint8), np.zeros((1, 2))
    )
    monkeypatch.setattr(peers, "_sample", lambda rows: sample)
    outcomes = []
    for broken in (stop, fail):
        monkeypatch.setattr(peers, "_run", broken)
        outcomes.append(peers.run({**params, "tools": "there"}))
    assert outcomes[0] == {"outcome": "too long", "limit": 1}
    assert outcomes[1] == {"outcome": "failed", "reason": "NameError: gone"}
    rows: list[tuple[Params, Result]] = [
        ({"tool": "anonypy", "k": 5, "l": 1, "suppress": 0.0, "rows": 300}, one) for one in outcomes
    ]
    found = {
        "study": "peers", "commit": "", "date": "", "n_cells": 2, "machine": "", "python": "",
        "packages": {"xgboost-cpu": ""}, **peers.summarize(rows),
    }  # fmt: skip
    text = "\n".join(render.page(found))
    assert "stopped after 1 s" in text
    assert "failed: NameError: gone" in text


def test_classes_are_records_published_alike() -> None:
    published = pa.table({"age": ["1..2", "1..2", "3..4", "1..2"], "sex": ["*", "*", "*", "m"]})
    numbers = peers._classes(published)
    assert numbers[0] == numbers[1]
    assert len({int(numbers[i]) for i in (0, 2, 3)}) == 3
    target = np.array([0, 1, 1, 0], np.uint8)
    assert peers._least_values(target, numbers) == 1
    assert peers._least_values(target, np.zeros(4, np.int64)) == 2
