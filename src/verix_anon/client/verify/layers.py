"""The layers, one after the other where one rests on another, and else side by side."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from verix_anon.client.verdict import DECIDING, LAYERS, RECEIPT, Finding, Profile, Status
from verix_anon.client.verify import (
    commitment,
    fingerprint,
    receipt,
    replay,
    sentinels,
    splits,
    twins,
    utility,
)
from verix_anon.client.verify.case import Case
from verix_anon.errors import MalformedDeliveryError
from verix_anon.files.trust import Trust
from verix_anon.progress import compiling

__all__ = ["malformed", "run"]

Check = Callable[[], Finding]


def run(case: Case, profile: Profile) -> tuple[Finding, ...]:
    """What every layer finds; the numbers are those of the package's list."""
    done: dict[str, Finding] = {}

    def layer(name: str, check: Check, *, compiles: bool = True) -> None:
        began, before = time.perf_counter(), compiling.seconds
        finding = check()
        seconds = time.perf_counter() - began
        if compiles:
            # Of the first run on a machine, not of this layer.
            seconds -= compiling.seconds - before
        decides = _decides(name, profile, case.trust)
        done[name] = replace(finding, decides=decides, seconds=round(max(0.0, seconds), 4))
        case.options.progress("layers", len(done), len(LAYERS))

    # These hold on to one core each, by hashing or by training models; the others share all.
    alone: dict[str, Check] = {
        "commitment": lambda: commitment.check(case),  # 1
        "fingerprint": lambda: fingerprint.check(case, profile),  # 6
        "utility": lambda: utility.check(case),  # 7
    }
    for name in case.options.skip:
        alone[name] = partial(_skipped, name, "left out by the caller")
    # What several read is made ready before them.
    _ = case.records, case.is_complete, case.grouped
    with ThreadPoolExecutor(min(2, case.options.threads)) as pool:
        futures = [pool.submit(layer, *named, compiles=False) for named in alone.items()]
        layer("sentinels", lambda: sentinels.check(case))  # 2
        layer("twins", lambda: twins.check(case))  # 3
        if profile is Profile.PAPER:
            layer("replay", lambda: _skipped("replay", "the paper has no such layer"))
            layer("splits", lambda: _skipped("splits", "the paper has no such layer"))
        else:
            layer("replay", lambda: replay.check(case))  # 4
            # 5: what the nodes hold is known only if the records are those that were sent.
            if done["replay"].status is Status.PASS:
                layer("splits", lambda: splits.check(case))
            else:
                layer("splits", lambda: _skipped("splits", "replay failed"))
        layer("receipt", lambda: receipt.check(case))  # 8
        for future in futures:
            future.result()
    return tuple(done[name] for name in LAYERS)


def _decides(name: str, profile: Profile, trust: Trust) -> bool:
    return name in DECIDING[profile] or (name == RECEIPT and bool(trust))


def _skipped(name: str, reason: str) -> Finding:
    return Finding(layer=name, status=Status.SKIPPED, summary=f"Not run: {reason}.")


def malformed(error: MalformedDeliveryError, profile: Profile, trust: Trust) -> tuple[Finding, ...]:
    """The findings on bytes that are not a delivery: the first layer fails, the others rest."""
    first = Finding(
        layer="commitment",
        status=Status.FAIL,
        summary=f"This is not a delivery: {error}.",
        guarantee="Malformed bytes are never accepted.",
        evidence={"malformed": str(error)},
    )
    rest = [_skipped(name, "the delivery is malformed") for name in LAYERS[1:]]
    return tuple(replace(f, decides=_decides(f.layer, profile, trust)) for f in (first, *rest))
