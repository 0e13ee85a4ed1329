"""Figures of the engine on Spark."""

from tools.bench.spark_page import ways
from tools.figures.registry import Figure, figure, load

GB = 1e9
WAYS = ("ours", "again", "quantiles", "sampled", "cuts")
"""The ways of the comparison, in their order"""


@figure("spark.rows")
def _rows() -> str:
    return f"{load('bench-spark')['rows']:,}"


@figure("spark.peak")
def _peak() -> str:
    return f"{load('bench-spark')['peak_bytes'] / GB:.1f} GB"


@figure("spark.minutes")
def _minutes() -> str:
    return f"{load('bench-spark')['seconds'] / 60:.1f} min"


@figure("spark.passes")
def _passes() -> str:
    return str(sum(phase["passes"] for phase in load("bench-spark")["phases"].values()))


@figure("spark.estimate")
def _estimate() -> str:
    found = load("bench-spark")["estimate"]
    moved = f"{found['read_bytes'] / 1e12:.1f} TB read, {found['shuffled_bytes'] / 1e12:.1f} TB"
    return f"{found['passes']} passes, {moved} shuffled, {60 * found['hours']:.0f} min"


def _way(number: int) -> Figure:
    def cells() -> str:
        _, passes, shuffled, _ = ways(load("bench-spark"))[number]
        return f"{passes} | {shuffled / GB:.2f} GB"

    return cells


for _number, _name in enumerate(WAYS):
    figure(f"spark.ways.{_name}")(_way(_number))
