"""What is to be thought of before columns are declared so: mistakes, and what may be one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from verix_anon.client.table import names
from verix_anon.client.table.choices import Choices, Column, chosen
from verix_anon.client.table.draft import parse_roles
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.person import RECORD
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import Error
from verix_anon.files.inside import inside

__all__ = ["Advice", "advice"]

IDENTIFIER, KEPT, SENSITIVE, QUASI, TARGET = (role.value for role in TableRole)


class Advice(NamedTuple):
    """What stands in the way, and what is only to be thought of."""

    mistakes: tuple[str, ...]
    warnings: tuple[str, ...]


def advice(text: str, wanted: Choices, beside: Path, home: Path) -> Advice:
    """What a roles file that is changed so would be refused for, and what it would be warned of.

    It lies in the folder `beside`; files of hierarchies are read if they lie in `home`.
    """
    warnings = tuple(_warnings(wanted))
    try:
        for column in wanted.columns:
            if column.hierarchy not in ("", PREFIX, DATE):
                inside(home, str(beside / column.hierarchy))
        declared = parse_roles(chosen(text, wanted), beside)
        declared.roles([column.name for column in wanted.columns])
    except Error as error:
        return Advice((str(error),), warnings)
    return Advice((), warnings)


def _warnings(wanted: Choices) -> Iterator[str]:
    for column in wanted.columns:
        yield from _of_column(column)
    if wanted.target is None:
        yield "no target is named: nothing is preserved on purpose, and models are not measured"
    roles = {column.name: column.role for column in wanted.columns}
    if not wanted.person and IDENTIFIER in roles.values():
        yield (
            "nobody said who a person is: if an identifier repeats, prepare will ask whether each"
            " record is a person"
        )
    if wanted.person not in ("", RECORD) and wanted.person not in roles:
        yield f"{wanted.person!r}, which is to tell people apart, is no column"


def _of_column(column: Column) -> Iterator[str]:
    name, role = column.name, column.role
    is_out = role != IDENTIFIER
    if column.guess == IDENTIFIER and is_out:
        yield f"{name!r} looks like an identifier ({column.reason}); as {role} it is published"
    elif is_out and role != QUASI and names.is_naming(name):
        yield f"{name!r} is named like what names people; as {role} it is published as it stands"
    if column.guess == SENSITIVE and role in (KEPT, QUASI):
        yield f"{name!r} looks sensitive; as {role} the privacy sheet does not measure it"
    if column.guess == QUASI and role in (KEPT, SENSITIVE):
        yield (
            f"{name!r} may be known to others; as {role} it is published as it stands, and people"
            " may be singled out by it"
        )
    if role == IDENTIFIER and column.guess in (QUASI, SENSITIVE, TARGET):
        yield f"{name!r} is dropped for good as an identifier"
