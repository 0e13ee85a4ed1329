"""Take what is sent from the owner's table, each column read once and let go before the next."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Floats
from verix_anon.client.table.columns import Columns
from verix_anon.client.table.digest import column_digest, digest_over
from verix_anon.client.table.encode import Described, encode_quasi, encoding
from verix_anon.client.table.person import person_column
from verix_anon.client.table.roles import Declared, TableRole
from verix_anon.client.table.target import encode_target
from verix_anon.client.table.task import Labels
from verix_anon.errors import TableError
from verix_anon.machine import check_memory
from verix_anon.protocol.contract import Column, Digest

__all__ = ["Taken", "check_room", "take"]


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What may be sent of a table, and its digest."""

    encoded: Described
    values: list[Floats]
    """Of the quasi-identifiers, by column"""
    table: Digest


def check_room(columns: Columns, declared: Declared, threads: int) -> None:
    """Refuse a table that will not fit, before hours are spent on it."""
    roles = declared.roles(columns.names)
    n_rows, n_quasi = columns.n_rows, sum(role is TableRole.QUASI for role in roles.values())
    # As measurement has it: first all values, and each thread reads or sorts a column, where text
    # takes most; then all that is sent, trackers, rows, and what threads need to find witnesses.
    threads = min(threads, n_quasi)
    coding = 16 + 8 * n_quasi + 90 * threads
    finding = 85 + 9 * n_quasi + 20 * threads
    check_memory(
        n_rows * max(coding, finding),
        f"preparing {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def take(columns: Columns, declared: Declared, threads: int) -> Taken:
    """Encode the columns that are sent, and digest all."""
    roles, n_rows = declared.roles(columns.names), columns.n_rows
    person_column(columns, roles, declared.person)

    def one(name: str) -> "_Column":
        array = columns[name]
        digest = column_digest(name, array)
        if roles[name] is TableRole.QUASI:
            values = np.empty(n_rows)
            column, is_missing = encode_quasi(name, array, declared, values)
            return _Column(digest, column, values, int(is_missing.sum()))
        if roles[name] is TableRole.TARGET:
            return _Column(digest, labels=encode_target(name, array, declared))
        return _Column(digest)

    with encoding(n_rows), ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(one, columns))
        quasi = [one for one in found if one.column is not None]
        labels = next((one.labels for one in found if one.labels), Labels.none(n_rows))
        encoded = Described.of(
            [one.column for one in quasi if one.column],
            [one.n_missing for one in quasi],
            labels,
            roles,
            declared,
        )
    values = [one.values for one in quasi if one.values is not None]
    return Taken(encoded, values, digest_over([one.digest for one in found], n_rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """What is kept of one column."""

    digest: bytes
    column: Column | None = None
    values: Floats | None = None
    n_missing: int = 0
    labels: Labels | None = None
