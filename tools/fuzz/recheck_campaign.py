"""Release random tables, judge the files by `recheck` and pycanon, and write what was found.

    python -m tools.fuzz.recheck_campaign --releases 2000 --seed 1

writes results/release-recheck.md. `--case 7` runs one case again and says what was found.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.core import provenance
from experiments.studies.peers.tools import setup
from tools import cases
from tools.fuzz.random_release import Asked, random_release
from tools.fuzz.recheck import Judged, judge
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import release
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.errors import Error

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "results" / "release-recheck.md"
PYCANON = Path(__file__).parent / "count_with_pycanon.py"
SECONDS_BETWEEN_LINES = 20.0


def case(seed: int, number: int, path: Path) -> str:
    """Release a random table and judge its file; raises unless all that was asked for holds."""
    asked, judged = attempt(seed, number, path)
    if isinstance(judged, Error):
        return type(judged).__name__
    assert not judged.violations, judged.violations
    assert not judged.differences, judged.differences
    return f"released as {asked.suffix}"


def attempt(seed: int, number: int, path: Path) -> tuple[Asked, Judged | Error]:
    """Release a random table: what was found in its file, or why there is none."""
    asked = random_release(random.Random(f"recheck/{seed}/{number}"))
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    out, sheet = path / f"released.{asked.suffix}", path / "sheet.json"
    # A model for adaptive traps takes longer than everything else.
    traps = "none" if asked.declared.target else "adaptive"
    try:
        made = prepare(
            asked.table,
            roles=asked.declared,
            k=asked.k,
            options=PrepareOptions(unsafe_seed=number, witnesses=0, threads=1, traps=traps),
        )
        delivery = cases.honest(made.submission)
        verdict = verify(
            delivery,
            made.manifest,
            submission=made.submission,
            skip=("fingerprint", "utility"),
            options=VerifyOptions(threads=1),
        )
        release(
            *(delivery, made.manifest, verdict),
            table=asked.table,
            out=out,
            sheet=sheet,
            options=asked.options,
        )
    except Error as error:
        assert not out.exists(), "refused, and there all the same"
        return asked, error
    return asked, judge(asked, out, sheet)


@dataclass(slots=True)
class Summary:
    """What became of all tables so far."""

    n_tables: int = 0
    released: Counter[str] = field(default_factory=Counter)
    """By each property of the release."""
    refused: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    for_pycanon: list[dict[str, Any]] = field(default_factory=list)

    def add(self, number: int, asked: Asked, judged: Judged | Error) -> None:
        """Count one table."""
        self.n_tables += 1
        if isinstance(judged, Error):
            self.refused[_kind(judged)] += 1
            return
        self.released.update(["all", *_properties(asked)])
        self.released["classes"] += judged.n_classes
        self.violations += [f"{number}: {each}" for each in judged.violations]
        self.differences += [f"{number}: {each}" for each in judged.differences]
        if judged.for_pycanon is not None:
            self.for_pycanon.append({"case": number, **judged.for_pycanon})


def _kind(error: Error) -> str:
    """The message without its names and numbers."""
    text = re.sub(r"'[^']*'", "…", str(error).split(";")[0].splitlines()[0])
    return f"{type(error).__name__}: {re.sub(r'-?[0-9][0-9.,%e-]*', '#', text)}"[:120]


def _properties(asked: Asked) -> Iterator[str]:
    """Everything about a release that the summary counts."""
    options, declared, said = asked.options, asked.declared, asked.said
    yield f"file: {asked.suffix}"
    yield f"representation: {options.representation}"
    attributes = {*declared.kept, *declared.sensitive}
    for name, given in (
        ("round", {**options.round_to, **said["round"]}),
        ("top-code", {**options.top_code, **said["top_code"]}),
        ("bins", {**_mapping(options.bins), **_mapping(said["bins"])}),
        ("drop", dict.fromkeys([*options.drop, *said["drop"]])),
    ):
        roles = {("kept or sensitive" if n in attributes else "quasi-identifier") for n in given}
        yield from (f"{name}: {role}" for role in sorted(roles))
    if isinstance(options.bins, str):
        yield "bins: auto for all"
    measures = {measure for asked_of in asked.diversity.values() for measure in asked_of}
    yield from (f"asked: {measure}" for measure in sorted(measures))
    yield from ["derived columns"] if declared.derived else []
    yield from ["persons with several records"] if declared.person == "patient" else []
    yield from ["pseudonym"] if options.pseudonym or declared.pseudonym else []
    yield from ["suppression"] if options.suppress or said["suppress"] else []
    yield from ["exact ends"] if options.exact_ends else []
    yield from ["order of the table"] if options.keep_order else []
    yield from [f"missing: {declared.missing}"]


def _mapping(given: object) -> dict[str, object]:
    return dict(given) if isinstance(given, dict) else {}


def run(seed: int, n_releases: int, n_tables: int | None = None) -> Summary:
    """Release until so many files are judged, or so many tables are tried."""
    found, last = Summary(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        while found.released["all"] < n_releases and found.n_tables != n_tables:
            number = found.n_tables
            try:
                found.add(number, *attempt(seed, number, Path(scratch) / "case"))
            except Exception:
                found.n_tables += 1
                found.crashes.append(f"{number}: {traceback.format_exc(limit=-3)}")
            if time.monotonic() - last > SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                print(
                    f"{found.n_tables:,} tables, {found.released['all']:,} released,"
                    f" {len(found.violations)} violations, {len(found.differences)} differences,"
                    f" {len(found.crashes)} crashes",
                    flush=True,
                )
    return found


def count_with_pycanon(sample: Sequence[dict[str, Any]]) -> list[str] | None:
    """Return where pycanon counts otherwise, or None if its environment is not there."""
    python = setup.python_of("pycanon")
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "given.json"
        given.write_text(json.dumps(sample))
        done = subprocess.run(
            [str(python), str(PYCANON), str(given)], check=True, capture_output=True, text=True
        )
    problems = []
    for own, other in zip(sample, json.loads(done.stdout.splitlines()[-1]), strict=True):
        if "error" in other:
            problems.append(f"{own['case']}: pycanon fails with {other['error']}")
            continue
        if own["k"] != other["k"]:
            problems.append(f"{own['case']}: k is {own['k']}, pycanon finds {other['k']}")
        for name, figures in own["sensitive"].items():
            for ours, theirs in (
                ("distinct_l", "l"),
                ("greatest_share", "alpha"),
                ("closeness_t", "t"),
            ):
                value = other["sensitive"][name][theirs]
                if abs(figures[ours] - value) > 1e-6:
                    problems.append(
                        f"{own['case']}: {ours} of {name} is {figures[ours]}, pycanon finds {value}"
                    )
    return problems


def render(
    found: Summary, facts: dict[str, Any], seed: int, sample: int, pycanon: list[str] | None
) -> str:
    """Return the page."""
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    n_released = found.released["all"]
    counts = {
        "random tables tried": found.n_tables,
        "refused with a message": found.refused.total(),
        "released and judged": n_released,
        "classes judged": found.released["classes"],
        "violations of k, l, cap, t, suppression, pseudonyms or remedies": len(found.violations),
        "differences from the sheet": len(found.differences),
        "crashes": len(found.crashes),
    }
    peer = (
        "pycanon was not there."
        if pycanon is None
        else f"pycanon counted {sample} of the releases again (k, l, greatest share and t by"
        f" records): {len(pycanon)} differences."
    )
    lines = [
        "# Published files, checked again",
        "",
        (
            f"Written by `python -m tools.fuzz.recheck_campaign --releases {n_released}"
            f" --seed {seed}` at {facts['commit']} on {facts['date']}: {facts['machine']},"
            f" Python {facts['python']}, {packages}."
        ),
        "",
        (
            "Each table has 30 to 300 rows and random columns, roles and options. The published"
            " file is read by code that shares nothing with `release`. Classes are the rows"
            " that are equal in all columns of quasi-identifiers. k counts persons; l, cap and t"
            " are counted as spec §12 defines them. They are compared with what was asked for and"
            " with the privacy sheet."
        ),
        "",
        "| | |",
        "| --- | ---: |",
        *(f"| {name} | {n:,} |" for name, n in counts.items()),
        "",
        peer,
        "",
    ]
    for title, each in (
        ("Violations", found.violations),
        ("Differences", found.differences),
        ("Crashes", found.crashes),
        ("Differences from pycanon", pycanon or []),
    ):
        if each:
            lines += [f"## {title}", "", "```", *each[:20], "```", ""]
    lines += ["## What the releases were", "", "| | releases |", "| --- | ---: |"]
    shown = sorted((n, c) for n, c in found.released.items() if n not in ("all", "classes"))
    lines += [f"| {name} | {n:,} |" for name, n in shown]
    lines += ["", "## Why tables were refused", "", "| message | tables |", "| --- | ---: |"]
    lines += [f"| {name.replace('|', '/')} | {n:,} |" for name, n in found.refused.most_common()]
    return "\n".join([*lines, ""])


def main(words: Sequence[str] | None = None) -> int:
    """Run the campaign; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=2_000, help="how many files to judge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=60, help="how many for pycanon as well")
    parser.add_argument("--case", type=int, help="this one alone; its files stay in build/fuzz")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(words)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        # Small tables are read faster by one thread.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.case is not None:
        asked, judged = attempt(options.seed, options.case, ROOT / "build" / "fuzz" / "case")
        print(asked.declared, asked.options, asked.diversity, asked.k, asked.suffix, sep="\n")
        print(judged if isinstance(judged, Error) else (judged.violations, judged.differences))
        return 0
    # Before it begins: somebody may commit while it runs.
    facts = provenance.facts()
    found = run(options.seed, options.releases)
    every = max(len(found.for_pycanon) // max(options.sample, 1), 1)
    sample = found.for_pycanon[::every][: options.sample]
    pycanon = count_with_pycanon(sample)
    text = render(found, facts, options.seed, len(sample), pycanon)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 1 if found.violations or found.differences or found.crashes or pycanon else 0


if __name__ == "__main__":
    sys.exit(main())
