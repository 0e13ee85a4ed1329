"""Lines of a roles file: text as TOML, and how the table was read."""

import json

from verix_anon.files.tables import Question, Read

__all__ = ["comment", "reading_lines", "toml"]


def toml(value: object) -> str:
    """Text, a number or a list as TOML; JSON's escapes are TOML's too, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Text within one line."""
    return "".join(c if c.isprintable() else "?" for c in text)


def reading_lines(read: Read) -> list[str]:
    """The section [reading], with what is still to be answered as comments."""
    fields = read.reading.to_json()
    if not fields and not read.questions:
        return []
    lines = ["[reading]", *(f"# Note: {comment(note)}." for note in read.notes)]
    lines += [f"{name} = {toml(v)}" for name, v in fields.items() if not isinstance(v, dict)]
    lines += _asked(read, None)
    for name in ("dates", "missing"):
        entries = fields.get(name)
        given = entries if isinstance(entries, dict) else {}
        inner = [f"{toml(column)} = {toml(value)}" for column, value in given.items()]
        inner += _asked(read, name)
        lines += ["", f"[reading.{name}]", *inner] if inner else []
    return [*lines, ""]


def _asked(read: Read, section: str | None) -> list[str]:
    """The questions that a section answers, each answer on a line to be uncommented."""
    lines = []
    for question in read.questions:
        if (question.name if question.column is not None else None) == section:
            lines.append(f"# QUESTION: {comment(question.sentence)}; uncomment what is right:")
            lines += [f"# {_entry(question, answer)}" for answer in question.answers]
    return lines


def _entry(question: Question, answer: str) -> str:
    name = question.name if question.column is None else toml(question.column)
    return f"{name} = {toml(answer)}"
