"""Measure what the two tiers of tests take: `python -m tools.test_times`, or `make test-times`.

It runs `make test`'s tests and then `make test-all`'s, and writes results/test-times.md. To use the
reports of runs that you made with `pytest --junitxml=FILE`, name both files:

    python -m tools.test_times --read test.xml test-all.xml
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from experiments.core import provenance

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
TIERS = {"test": "not long", "test-all": "long"}
"""The targets of make, and the tests that each runs."""
PYTEST = ["-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
N_SLOWEST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One test, with what its own fixtures took."""

    name: str
    tier: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One run of a tier."""

    name: str
    tests: int
    skipped: int
    seconds: float
    """From start to end."""
    summed: float
    """The sum over its tests, which two workers share."""


class FailedError(Exception):
    """A test failed, so that the times say nothing."""


def run(name: str, report: Path) -> None:
    """Run a tier and leave its report."""
    words = [sys.executable, *PYTEST, "-m", TIERS[name], f"--junitxml={report}"]
    subprocess.run(words, cwd=ROOT, check=False)


def read(name: str, report: Path) -> tuple[Tier, list[Timed]]:
    """Read the report of a tier.

    Raises:
        FailedError: a test of it failed, or there is no report.
    """
    if not report.is_file():
        raise FailedError(f"`make {name}` left no report.")
    suite = ET.parse(report).getroot().find("testsuite")
    assert suite is not None
    n_failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    if n_failed:
        raise FailedError(f"{n_failed} tests of `make {name}` failed; nothing was written.")
    timed = [
        Timed(name=_node(case), tier=name, seconds=float(case.attrib["time"]))
        for case in suite.iter("testcase")
    ]
    tier = Tier(
        name=name,
        tests=int(suite.attrib["tests"]),
        skipped=int(suite.attrib["skipped"]),
        seconds=float(suite.attrib["time"]),
        summed=sum(test.seconds for test in timed),
    )
    return tier, timed


def _node(case: ET.Element) -> str:
    """Return a test's name as pytest takes it: the report writes paths with dots."""
    parts = case.attrib["classname"].split(".")
    for n in range(len(parts), 0, -1):
        path = Path(*parts[:n]).with_suffix(".py")
        if (ROOT / path).is_file():
            return "::".join([path.as_posix(), *parts[n:], case.attrib["name"]])
    return f"{case.attrib['classname']}::{case.attrib['name']}"


def render(result: dict[str, Any]) -> str:
    """Return the page."""
    packages = ", ".join(f"{name} {version}" for name, version in result["packages"].items())
    lines = [
        "# What the tests take",
        "",
        (
            f"Written by `make test-times` at {result['commit']} on {result['date']}:"
            f" {result['machine']}, Python {result['python']}, {packages}. Two workers."
        ),
        "",
        "| command | tests | skipped | minutes | sum over its tests, minutes |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| `make {tier['name']}` | {tier['tests']:,} | {tier['skipped']:,} |"
        f" {tier['seconds'] / 60:.1f} | {tier['summed'] / 60:.1f} |"
        for tier in result["tiers"]
    ]
    lines += [
        "",
        (
            f"The slowest {len(result['slowest'])} tests."
            " The first test that needs a fixture pays for making it."
        ),
        "",
        "| seconds | command | test |",
        "| ---: | --- | --- |",
    ]
    lines += [
        f"| {test['seconds']:.1f} | `make {test['tier']}` | `{_in_a_cell(test['name'])}` |"
        for test in result["slowest"]
    ]
    return "\n".join([*lines, ""])


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def measure(reports: Sequence[Path]) -> dict[str, Any]:
    """Return the totals of the tiers and their slowest tests, and what they were measured on."""
    found = [read(name, report) for name, report in zip(TIERS, reports, strict=True)]
    timed = [test for _, tests in found for test in tests]
    slowest = sorted(timed, key=lambda test: (-test.seconds, test.name))[:N_SLOWEST]
    return {
        **provenance.facts(),
        "tiers": [asdict(tier) for tier, _ in found],
        "slowest": [asdict(test) for test in slowest],
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.test_times", description=__doc__)
    parser.add_argument("--read", nargs=2, type=Path, metavar=("TEST", "TEST_ALL"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder to write into")
    options = parser.parse_args(words)
    try:
        if options.read:
            result = measure(options.read)
        else:
            with tempfile.TemporaryDirectory() as folder:
                reports = [Path(folder) / f"{name}.xml" for name in TIERS]
                for name, report in zip(TIERS, reports, strict=True):
                    run(name, report)
                result = measure(reports)
    except FailedError as error:
        print(error, file=sys.stderr)
        return 1
    text = render(result)
    (options.out / "test-times.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.out / "test-times.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
