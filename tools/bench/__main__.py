"""Run the benchmarks: `make bench`; writes results/bench-*.json and tables beside them.

python -m tools.bench [NAME ...] [--before COMMIT] [--large]

Names are those of results/bench-NAME.md; without any, all but `large`. `commands` measures an
earlier commit too, if one is named, and 20,000,000 records with --large.

The one on Spark runs by itself, in Spark's environment: `python -m tools.bench.spark [ROWS]`.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from tools.bench import (
    checker,
    commands,
    desk,
    engine,
    kit,
    large,
    machine,
    owner,
    primitives,
    reading,
    series,
    service,
)
from tools.bench.record import record

Measure = Callable[[], dict[str, Any]]
Render = Callable[[dict[str, Any]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.bench")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    facts = machine.facts()
    benches: dict[str, tuple[Measure, Render]] = {
        "checker": (checker.measure, checker.render),
        "commands": (partial(commands.measure, given.before, large=given.large), commands.render),
        "desk": (desk.measure, desk.render),
        "engine": (engine.measure, render_engine),
        "kit": (kit.measure, kit.render),
        "owner": (owner.measure, owner.render),
        "primitives": (primitives.measure, primitives.render),
        "reading": (reading.measure, reading.render),
        "series": (series.measure, series.render),
        "service": (service.measure, service.render),
        "large": (large.measure, large.render),
    }
    for name in given.names or [name for name in benches if name != "large"]:
        record(name, facts, *benches[name])


def render_engine(result: dict[str, object]) -> list[str]:
    """The figures as Markdown tables."""
    lines = [
        "Growing the tree, beside scikit-learn's DecisionTreeClassifier with the same least leaf:",
        "",
        "| rows | columns | verix-anon | verix-anon, one thread | scikit-learn | ratio |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r['rows']:,} | {r['columns']} | {r['verix_seconds']:.3f} s"
        f" | {r['verix_one_thread_seconds']:.3f} s | {r['scikit_learn_seconds']:.2f} s"
        f" | {r['ratio']:.0f} |"
        for r in result["beside_scikit_learn"]  # type: ignore[attr-defined]
    ]
    lines += ["", "By kind of table:", "", "| table | grow | leaves | depth |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {r['table']} | {r['seconds']:.3f} s | {r['leaves']:,} | {r['depth']} |"
        for r in result["kinds"]  # type: ignore[attr-defined]
    ]
    lines += ["", "By rule at 1,000,000 x 16, with k for the least leaf:", ""]
    lines += ["| rule | sent | grow | leaves | times the first | aim |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: |"]
    rules: list[dict[str, Any]] = result["rules"]  # type: ignore[assignment]
    for r, aim in zip(rules, ("", "0.7", "0.5"), strict=True):
        lines.append(
            f"| {r['rule']} | {r['sent']} | {r['seconds']:.3f} s | {r['leaves']:,}"
            f" | {r['seconds'] / rules[0]['seconds']:.2f} | {aim} |"
        )
    return [*lines, "", *_facts(result), ""]


def _facts(result: dict[str, object]) -> list[str]:
    ten, stages = result["ten_million"], result["stages"]
    assert isinstance(ten, dict)
    assert isinstance(stages, dict)
    bandwidth = float(str(result["copy_gb_per_second"])) * 1e9
    lines = [
        "Where the time goes at 1,000,000 x 16, and what copying the same bytes would take:",
        "",
        "| stage | seconds | bytes moved | at copy speed | times that |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for stage in ("sort", "grow"):
        seconds, moved = stages[f"{stage}_seconds"], stages[f"{stage}_bytes"]
        least = moved / bandwidth
        lines.append(
            f"| {stage} | {seconds:.3f} | {moved / 1e9:.1f} GB | {least:.3f} s"
            f" | {seconds / least:.1f} |"
        )
    lines += [f"| commit | {stages['commit_seconds']:.3f} | | | |", ""]
    lines.append(
        f"- 10,000,000 x 16: grown in {ten['grow_seconds']:.2f} s,"
        f" {result['ten_million_growth']:.1f} times as long as 1,000,000; peak memory"
        f" {ten['peak_bytes'] / 1e9:.2f} GB, {ten['peak_ratio']:.2f} times the encoded table."
    )
    lines.append(
        f"- Encoding a pandas table of 1,000,000 x 16: {result['encode_pandas_seconds']:.2f} s."
    )
    lines.append(
        f"- The first run ever compiles for {result['first_run_compile_seconds']:.1f} s;"
        f" `verix-anon --help` takes {result['help_seconds']:.2f} s."
    )
    return lines


if __name__ == "__main__":
    main()
