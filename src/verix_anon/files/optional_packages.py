"""Packages that are extras: there, or a sentence with the command that installs them."""

from importlib.util import find_spec

from verix_anon.errors import Error, TableError


def need(package: str, extra: str, what: str, fail: type[Error] = TableError) -> None:
    """Raise unless the package of an extra is installed; `what` needs it, as a subject."""
    if find_spec(package) is None:
        raise fail(
            f"{what} needs the extra {extra!r}, which is not installed; in your clone of"
            f" verix-anon: .venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
        )
