"""How surely planted records are hit (spec §7)."""

__all__ = ["evasion_probability"]


def evasion_probability(n_sentinels: int, n_sent: int, dropped: float) -> float:
    """The chance that blind dropping of a share of the records hits no sentinel."""
    return float((1 - n_sentinels / n_sent) ** (dropped * n_sent))
