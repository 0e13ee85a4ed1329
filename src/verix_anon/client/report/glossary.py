"""The words of the report, each explained once for a reader who has not read the specification."""

from dataclasses import dataclass

from verix_anon.client.verdict import LAYERS, Profile
from verix_anon.translation import PageTexts, keys


@dataclass(frozen=True, slots=True)
class Words:
    """A layer in plain words."""

    title: str
    question: str
    proves: str
    proves_not: str


THIN = ("replay", "splits")
"""The layers that prove less in a thin verification."""


def words(layer: str, profile: Profile, t: PageTexts) -> Words:
    """The words for a layer in a profile."""
    known = layer if layer in LAYERS else "unknown"
    proved = f"{known}.thin" if profile is Profile.THIN and layer in THIN else known
    return Words(
        title=t(f"layer.{known}.title") if layer in LAYERS else layer,
        question=t(f"layer.{known}.question"),
        proves=t(f"layer.{proved}.proves"),
        proves_not=t(f"layer.{proved}.proves_not"),
    )


def glossary(t: PageTexts) -> dict[str, list[tuple[str, str]]]:
    """Terms and their meanings, by subject."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key in keys("glossary"):
        group, _, part = key.partition(".")
        if part == "title":
            found[group] = []
        elif part.endswith(".term"):
            meaning = part.removesuffix("term") + "meaning"
            found[group].append((t(f"glossary.{key}"), t(f"glossary.{group}.{meaning}")))
    return {t(f"glossary.{group}.title"): entries for group, entries in found.items()}
