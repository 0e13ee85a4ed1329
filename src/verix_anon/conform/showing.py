"""How a case for a verifier is made: an owner, a delivery, and the exit code that is right."""

from collections.abc import Callable
from pathlib import Path

from verix_anon.client.verdict import Profile
from verix_anon.conform import owners
from verix_anon.conform.kit import Kind, Made, Recipe

__all__ = ["EXITS", "Write", "recipe"]

Write = Callable[[Path], object]
"""Writes a delivery's folder."""

EXITS = {
    Kind.ACCEPTED: 0,
    Kind.CHEAT: 1,
    Kind.MALFORMED: 1,
    Kind.UNDECIDED: 3,
    Kind.MISTAKE: 2,
}
"""The exit code of a verifier (spec §10)."""


def recipe(
    kind: Kind, name: str, title: str, section: str, shown: tuple[str, Write], **said: object
) -> Recipe:
    """A case of an owner's and a delivery; `said` are the profile and the layers."""
    owner, write = shown
    folder = {Kind.ACCEPTED: "accepted", Kind.MALFORMED: "malformed"}.get(kind, "cheats")

    def make(kit: Path) -> Made:
        paths = {**owners.write_owner(owner, kit), "delivery": f"{folder}/{name}"}
        (kit / folder).mkdir(exist_ok=True)
        write(kit / paths["delivery"])
        expected = {"exit": EXITS[kind], "profile": Profile.FULL.value, **said}
        return Made(paths, expected)

    return Recipe(id=name, title=title, section=section, kind=kind, make=make)
