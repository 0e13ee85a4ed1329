"""Figures of what commands take on a large table."""

from tools.figures.registry import Figure, figure, load


@figure("large.rows")
def rows() -> str:
    """How many rows the table had."""
    return f"{load('bench-large')['rows']:,}"


def _peak(command: str) -> Figure:
    def gigabytes() -> str:
        return f"{load('bench-large')['commands'][command]['peak_bytes'] / 1e9:.1f} GB"

    return gigabytes


for _command in ("prepare", "anonymize", "verify", "release"):
    figure(f"large.{_command}")(_peak(_command))
figure("large.spark")(_peak("anonymize on Spark"))
