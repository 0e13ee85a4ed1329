"""Check what callers of prepare(), verify() and the like hand over, and say what is wrong with it.

An argument is an object or the path of its file. Options must have the types of their annotations,
and the arrays of a delivery in memory must have theirs: Python checks neither.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.fields import shown
from verix_anon.protocol.messages import Delivery

FilePath = str | os.PathLike[str]
Given = TypeVar("Given")
Read = TypeVar("Read")
Options = TypeVar("Options")

WORDS: Mapping[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    NoneType: "None",
    Mapping: "a mapping of",
    Sequence: "a list of",
    tuple: "a pair of",
    Callable: "a function",
}


def is_path(given: object) -> TypeGuard[FilePath]:
    """Whether it is meant to name a file."""
    return isinstance(given, str | os.PathLike)


def opened(
    given: Given | FilePath, kind: type[Given], read: Callable[[FilePath], Read], what: str
) -> Given | Read:
    """Return what was given, or read it from its path."""
    if isinstance(given, kind):
        return given
    if is_path(given):
        return read(given)
    raise TableError(f"{what} must be a {kind.__name__} or the path of one, not {shown(given)}")


def options_of(given: Options | None, kind: type[Options]) -> Options:
    """The options, or the usual ones."""
    if given is not None and not isinstance(given, kind):
        raise TableError(f"options must be {kind.__name__}(...), not {shown(given)}")
    return kind() if given is None else given


def check_fields(options: object) -> None:
    """Raise unless each field of a frozen dataclass fits its type; words become their choices."""
    for name, hint in get_type_hints(type(options)).items():
        value = getattr(options, name)
        if not _fits(value, hint):
            raise TableError(f"{name} must be {_words(hint)}, not {shown(value)}")
        for words in _choices(hint):
            if isinstance(value, str):
                object.__setattr__(options, name, words(value))


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _choices(hint: Any) -> list[type[StrEnum]]:
    return [m for m in _members(hint) if isinstance(m, type) and issubclass(m, StrEnum)]


def _words(hint: Any) -> str:
    """Say in words what may be given; of a choice, the words to choose from."""
    choices = _choices(hint)
    found = [f"one of {', '.join(words)}" for words in choices]
    for member in _members(hint):
        if member not in choices and not (member is str and choices):
            kind = get_origin(member) or member
            inner = () if kind is Callable else dict.fromkeys(map(_words, get_args(member)))
            found.append(f"{WORDS.get(kind, kind.__name__)} {' to '.join(inner)}".rstrip())
    return " or ".join(found)


def _fits(value: object, hint: Any) -> bool:
    if choices := _choices(hint):
        if isinstance(value, str):
            return any(value in set(words) for words in choices)
        return any(_fits(value, m) for m in _members(hint) if m not in choices)
    if len(members := _members(hint)) > 1:
        return any(_fits(value, member) for member in members)
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (int, float):
        wanted = Integral if kind is int else Real
        return isinstance(value, wanted) and not isinstance(value, bool)
    if kind is tuple:
        return isinstance(value, tuple | list) and len(value) == len(inner) and _each(value, inner)
    if kind is Mapping:
        return isinstance(value, Mapping) and all(_each(pair, inner) for pair in value.items())
    if kind is Sequence:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            return False
        return all(_fits(item, inner[0]) for item in value)
    return isinstance(value, kind)


def _each(values: Iterable[object], hints: Sequence[Any]) -> bool:
    return all(_fits(value, hint) for value, hint in zip(values, hints, strict=True))


ARRAYS: Mapping[str, Mapping[str, tuple[type[np.generic], int]]] = {
    "records": {
        "row": (np.int64, 1),
        "tracker": (np.uint8, 2),
        "leaf": (np.int32, 1),
        "target": (np.uint8, 1),
    },
    "leaves": {"count": (np.int64, 1), "minimum": (np.float64, 2), "maximum": (np.float64, 2)},
    "tree": {
        "column": (np.int32, 1),
        "threshold": (np.float64, 1),
        "left": (np.int32, 1),
        "right": (np.int32, 1),
        "leaf": (np.int32, 1),
    },
}
"""The type and the dimensions of each array."""
DIGESTS = ("contract", "submission", "root")
COUNTS = ("rows", "leaves", "nodes")


def check_types(delivery: Delivery) -> None:
    """Raise MalformedDeliveryError unless every part has its type: annotations bind no one."""
    for part, arrays in ARRAYS.items():
        for name, (dtype, n_dimensions) in arrays.items():
            array = getattr(getattr(delivery, part), name, None)
            # No subclass: a masked array would hide values from the checks.
            if type(array) is not np.ndarray or (array.dtype, array.ndim) != (dtype, n_dimensions):
                raise MalformedDeliveryError(
                    f"{name} of the {part} is not an array of {dtype.__name__}"
                    f" with {n_dimensions} dimensions"
                )
    header = delivery.header
    for name in DIGESTS:
        digest = getattr(header, name, None)
        if not (isinstance(digest, bytes) and len(digest) == 32):
            raise MalformedDeliveryError(f"{name} in the header is not 32 bytes")
    for name in COUNTS:
        if type(getattr(header, name, None)) is not int:
            raise MalformedDeliveryError(f"{name} in the header is not a whole number")


def digests(delivery: Delivery) -> Mapping[str, str]:
    """SHA-256 of each part, where a verdict names those of files."""
    found = {}
    for part, arrays in ARRAYS.items():
        digest = sha256()
        for name in arrays:
            digest.update(np.ascontiguousarray(getattr(getattr(delivery, part), name)).data)
        found[f"memory:{'nodes' if part == 'tree' else part}"] = digest.hexdigest()
    return found
