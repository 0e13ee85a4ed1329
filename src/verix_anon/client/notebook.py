"""What notebooks show of results: small tables, with everything escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def as_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table of text."""
    shown = [_row("td", row) for row in rows]
    return f"<table>{_row('th', head) if head else ''}{''.join(shown)}</table>"


def _row(tag: str, cells: Iterable[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"


def as_list(items: Iterable[object]) -> str:
    """A list of sentences, nothing if there are none."""
    body = "".join(f"<li>{escape(str(item))}</li>" for item in items)
    return f"<ul>{body}</ul>" if body else ""
