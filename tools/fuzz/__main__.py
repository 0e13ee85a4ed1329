"""Run a campaign, or one case of it again."""

import argparse
import secrets
import sys
import time
from pathlib import Path

from tools.fuzz import campaign, judging, recheck_campaign, releases
from tools.fuzz.campaign import Case, Tally

TARGETS: dict[str, Case] = {
    "folders": judging.case,
    "release": releases.case,
    "recheck": recheck_campaign.case,
}
SECONDS_BETWEEN_LINES = 20.0
MOST_FAILURES = 20


def main() -> int:
    options = _options()
    case = TARGETS[options.target]
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    again = f"python -m tools.fuzz --target {options.target} --seed {seed}"
    if options.case is not None:
        print(case(seed, options.case, options.keep / "case"))
        return 0
    print(f"{options.count:,} cases of {again}", flush=True)
    numbers = range(options.start, options.start + options.count)
    began = time.monotonic()
    tally = _told(case, seed, numbers, again)
    for outcome, n in tally.outcomes.most_common():
        print(f"{n:>9,}  {outcome}")
    seconds, number = tally.slowest
    print(f"The slowest took {seconds:.1f} s (--case {number}).")
    minutes = (time.monotonic() - began) / 60
    print(f"{len(tally.failures)} of {tally.n_done:,} cases failed, in {minutes:.0f} minutes.")
    return 1 if tally.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, default="folders")
    parser.add_argument("--count", type=int, default=1_000_000, help="how many cases")
    parser.add_argument("--start", type=int, default=0, help="the first one: to go on with a run")
    parser.add_argument("--seed", type=int, help="else one that is drawn, and printed")
    parser.add_argument("--case", type=int, help="this one alone, in this process")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="where --case works")
    return parser.parse_args()


def _told(case: Case, seed: int, numbers: range, again: str) -> Tally:
    """Run them, with a line every now and then, and each failure as it comes."""
    began, last, n_told = time.monotonic(), 0.0, 0
    tally = Tally()
    for tally in campaign.run(case, seed, numbers):
        for failure in tally.failures[n_told:]:
            print(f"\n{again} --case {failure.number}\n{failure.reason}", flush=True)
        n_told = len(tally.failures)
        now = time.monotonic() - began
        if now - last > SECONDS_BETWEEN_LINES:
            last = now
            print(
                f"{tally.n_done:,} done, {tally.n_done / now:.0f} a second,"
                f" {len(tally.failures)} failed",
                flush=True,
            )
        if len(tally.failures) >= MOST_FAILURES:
            print("Too many fail: the rest is left out.")
            break
    return tally


if __name__ == "__main__":
    sys.exit(main())
