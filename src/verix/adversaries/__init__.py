"""Providers that each misbehave in one named way; they know what a provider knows, no more."""

from collections.abc import Callable

from verix.adversaries.altering import SplitsBlindly
from verix.adversaries.forging import ForgesRoot
from verix.adversaries.lazy import DropsRows
from verix.protocol.messages import Provider

__all__ = ["ADVERSARIES", "DropsRows", "ForgesRoot", "SplitsBlindly"]

ADVERSARIES: dict[str, Callable[[], Provider]] = {
    "lazy": DropsRows,
    "dumb": lambda: ForgesRoot(SplitsBlindly()),
    "approximate": SplitsBlindly,
}
"""The paper's adversaries by their names there (§4.2)."""
