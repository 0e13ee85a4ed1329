"""Texts in the reader's language: one catalogue for each language, `texts/<language>.toml`.

A catalogue has two kinds of entries. Keyed texts, such as `report.title`, are what a page says
itself. The entries under `say` are the sentences that the client writes into its files. Files stay
English, because they are the record and may be signed. A page shows the sentence of the reader's
language instead, which the English entry finds as a pattern. A new language is one file.

In a text, `{n}` is a value and `{n|leaf|leaves}` a word that depends on the number n. In an English
pattern, `{n}` is a number or percentage, and `{x:kind}` is one of the other kinds of `KINDS`.
"""

import ast
import re
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from verix_anon.errors import TableError

FOLDER = files("verix_anon") / "texts"
RECORD = "en"
"""The language of files."""
LANGUAGES = (
    RECORD,
    *sorted({path.name.removesuffix(".toml") for path in FOLDER.iterdir()} - {RECORD}),
)
QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
KINDS = {
    "": r"(?:under |over )?-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?",
    "name": QUOTED,
    "names": rf"(?:{QUOTED})(?:(?:, | and )(?:{QUOTED}))*",
    "date": r"\d{4}-\d\d-\d\d[0-9T:Z.+-]*",
    "word": r"[^\s,;]+",
    "files": r"[^\s,;]+(?:(?:, | and )[^\s,;]+)*",
    "any": r".+?",
    "say": r".*?",
    "list": r".+?",
    "figures": r".+?",
}
"""What each kind looks like. `name` is quoted, `say` is translated, `list` part by part, and
`figures` are names with numbers, such as `age 0.5, town 1,000`."""
ENDS = re.compile(r"(?<=[.!?;:]) ")
SEPARATORS = ("; ", ", and ", " and ", ", ")
MOST_PIECES = 4
"""So many parts between two full stops can be one sentence, since names hold full stops, too."""


def known(language: str) -> str:
    """Return the language if there are texts in it, or else raise TableError."""
    if language not in LANGUAGES:
        raise TableError(f"there are no texts in {language!r}, only in {', '.join(LANGUAGES)}")
    return language


@cache
def texts(language: str) -> Mapping[str, str]:
    """All texts of a language by their keys."""
    return dict(_flat(tomllib.loads((FOLDER / f"{language}.toml").read_text("utf-8")), ""))


def _flat(found: Mapping[str, object], before: str) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, str(value)


def keys(before: str) -> list[str]:
    """The last parts of the keys below another, such as the terms of a glossary, in order."""
    return [key.removeprefix(f"{before}.") for key in texts(RECORD) if key.startswith(f"{before}.")]


class _Filler(string.Formatter):
    """Puts values into a text as the language writes them."""

    def __init__(self, language: str) -> None:
        self.language = language

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        name, *forms = field_name.split("|")
        if forms:
            return forms[0 if str(kwargs[name]) == "1" else -1], name
        return kwargs[name], name

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "share":
            return share(value, self.language)
        if isinstance(value, int | float):
            return number(value, format_spec or ",", self.language)
        return str(value)


def text(key: str, language: str, **values: object) -> str:
    """The text of a key, with values put into it."""
    return _Filler(language).vformat(texts(language)[key], (), values)


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The reader's language, as a page is written in it."""

    language: str

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key."""
        return text(key, self.language, **values)

    def say(self, sentence: str) -> str:
        """A sentence of the client's."""
        return translated(sentence, self.language)

    def number(self, value: float, form: str = ",") -> str:
        """A number."""
        return number(value, form, self.language)

    def percent(self, share: float) -> str:
        """A share with as many places as it has, such as 0.1% or 5%."""
        return number(share * 100, "g", self.language) + number(0, ".0%", self.language)[1:]

    def share(self, share_of_records: float) -> str:
        """A share of the records."""
        return share(share_of_records, self.language)

    def date(self, iso: str) -> str:
        """A day or moment."""
        return date(iso, self.language)


def number(value: float, form: str, language: str) -> str:
    """A number as the language writes it; `form` is Python's, such as `,.1f` or `.1%`."""
    return _numeral(format(value, form), language)


def share(value: float, language: str = RECORD) -> str:
    """A share of the records; a little is never shown as nothing, nor nearly all as all."""
    if 0 < value < 0.001:
        return _numeral("under 0.1%", language)
    return _numeral("over 99.9%" if 0.999 < value < 1 else f"{value:.1%}", language)


def date(iso: str, language: str) -> str:
    """A day, or a moment in UTC, as the language writes it; any other text as it is."""
    with suppress(ValueError):
        moment = datetime.fromisoformat(iso)
        if moment.tzinfo is None:
            return moment.strftime(text("form.day", language))
        return moment.astimezone(UTC).strftime(text("form.moment", language))
    return iso


def translated(sentence: str, language: str) -> str:
    """A sentence of the client's in the language; the English one if it is not known.

    A text of several sentences is translated if each of them is known.
    """
    if language == RECORD:
        return sentence
    return find(sentence, language) or sentence


def find(sentence: str, language: str) -> str | None:
    """The same, or None if a part of it is not known."""
    found, pieces = [], ENDS.split(sentence)
    if (whole := _one(sentence, language)) is not None or len(pieces) == 1:
        return whole
    while pieces:
        for n in range(1, MOST_PIECES + 1):
            if (one := _one(" ".join(pieces[:n]), language)) is not None:
                break
        else:
            return None
        found.append(one)
        pieces = pieces[n:]
    return " ".join(found)


def _one(sentence: str, language: str) -> str | None:
    """One sentence, without looking for others in it."""
    exact, patterns = _patterns()
    if (key := exact.get(sentence)) is not None:
        return texts(language)[key]
    for pattern, key, kinds in patterns:
        if (match := pattern.fullmatch(sentence)) is not None:
            values = {n: _shown(match[n], kind, language) for n, kind in kinds.items()}
            return text(key, language, **values)
    return None


@cache
def _patterns() -> tuple[dict[str, str], list[tuple[re.Pattern[str], str, dict[str, str]]]]:
    """The sentences without values, and the patterns of the others, the most telling first."""
    exact, patterns = {}, []
    for key, sentence in texts(RECORD).items():
        if not key.startswith("say."):
            continue
        built, kinds, n_literal = "", dict[str, str](), 0
        for literal, field, kind, _ in string.Formatter().parse(sentence):
            built, n_literal = built + re.escape(literal), n_literal + len(literal)
            name, *forms = (field or "").split("|")
            if forms:
                built += f"(?:{'|'.join(map(re.escape, forms))})"
            elif name in kinds:
                built += f"(?P={name})"
            elif field is not None:
                kinds[name] = kind or ""
                built += f"(?P<{name}>{KINDS[kind or '']})"
        if kinds:
            patterns.append((n_literal, re.compile(built), key, kinds))
        else:
            exact[sentence] = key
    patterns.sort(key=lambda each: -each[0])
    return exact, [each[1:] for each in patterns]


def _shown(found: str, kind: str, language: str) -> str:
    """A value of a sentence as the language writes it."""
    return SHOWN[kind](found, language) if kind in SHOWN else found


def _numeral(found: str, language: str) -> str:
    form = texts(language)
    for word in ("under ", "over "):
        if found.startswith(word):
            return form[f"form.{word.strip()}"] + _numeral(found.removeprefix(word), language)
    marks: dict[str, str | int | None] = {
        ",": form["form.thousands"],
        ".": form["form.decimal"],
        "%": form["form.percent"],
    }
    return found.translate(str.maketrans(marks))


def _name(found: str, language: str) -> str:
    with suppress(ValueError, SyntaxError):
        found = str(ast.literal_eval(found))
    return texts(language)["form.quoted"].replace("*", found)


def _names(found: str, language: str) -> str:
    return ", ".join(_name(match[0], language) for match in re.finditer(QUOTED, found))


def _list(found: str, language: str) -> str:
    """The whole if it is known, or else each part on its own."""
    if (whole := _one(found, language)) is not None:
        return whole
    for separator in SEPARATORS:
        if separator in found:
            word = texts(language)["form.and"] if "and" in separator else separator
            return word.join(_list(part, language) for part in found.split(separator))
    return translated(found, language)


SHOWN: dict[str, Callable[[str, str], str]] = {
    "": _numeral,
    "name": _name,
    "names": _names,
    "date": date,
    "say": translated,
    "list": _list,
    "figures": lambda found, language: re.sub(
        rf"(?<= ){KINDS['']}(?=[,;]|$)", lambda each: _numeral(each[0], language), found
    ),
}
