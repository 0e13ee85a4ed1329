"""Where benchmarks leave what they found: results/bench-NAME.json, and a page beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["record"]

RESULTS = Path(__file__).parent.parent.parent / "results"
ALONE = {
    "chaos": "python -m tools.chaos",
    "large": "python -m tools.bench large",
    "spark": "python -m tools.bench.spark",
}
"""Those that take long, and are no part of `make bench`"""


def record(
    name: str,
    facts: dict[str, object],
    measure: Callable[[], dict[str, Any]],
    render: Callable[[dict[str, Any]], list[str]],
) -> None:
    """Measure, and write what was found."""
    RESULTS.mkdir(exist_ok=True)
    result = {**facts, **measure()}
    text = "\n".join([*_heading(name, result), *render(result)])
    (RESULTS / f"bench-{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (RESULTS / f"bench-{name}.md").write_text(text)
    print(text)


def _heading(name: str, result: dict[str, object]) -> list[str]:
    command = ALONE.get(name, "make bench")
    where = (
        f"Written by `{command}` at {result['commit']} on {result['date']}:"
        f" {result['machine']}, Python {result['python']}, copying"
        f" {result['copy_gb_per_second']:.0f} GB/s. k = 5, seed {result['seed']}."
    )
    return [f"# Benchmark: {name}", "", where, ""]
