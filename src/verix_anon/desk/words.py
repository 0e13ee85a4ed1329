"""What the pages say, in each language: one file of texts each, with the same keys."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

__all__ = ["LANGUAGES", "LANGUAGE_COOKIE", "language_of", "numbered", "texts"]

LANGUAGES = ("en", "de")
LANGUAGE_COOKIE = "verix-desk-language"


@cache
def texts(language: str) -> Mapping[str, str]:
    """The texts of a language by their keys, such as jobs.title."""
    source = files("verix_anon.desk") / "texts" / f"{language}.toml"
    return dict(_flat(tomllib.loads(source.read_text("utf-8")), ""))


def _flat(found: Mapping[str, object], before: str) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, str(value)


def language_of(headers: Headers) -> str:
    """The one that was chosen, or the first that the browser asks for and we have."""
    chosen = cookie_parser(headers.get("cookie", "")).get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    wanted = []
    for part in headers.get("accept-language", "").split(","):
        name, _, weight = part.strip().partition(";q=")
        try:
            wanted.append((-float(weight or 1), name.strip().lower().partition("-")[0]))
        except ValueError:
            continue
    able = [name for _, name in sorted(wanted, key=lambda one: one[0]) if name in LANGUAGES]
    return able[0] if able else LANGUAGES[0]


def numbered(language: str, value: float, form: str = ",") -> str:
    """A number as the language writes it, by the form of Python's that says how many places."""
    text = format(value, form)
    if language == "de":
        return text.translate(str.maketrans(",.", ".,")).replace("%", "\N{NO-BREAK SPACE}%")
    return text
