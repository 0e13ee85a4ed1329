"""Where a release goes: the table to publish, and its privacy sheet for the owner."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from verix_anon.client.given import FilePath, is_path
from verix_anon.client.release.assemble import Published
from verix_anon.files.aside import Aside, begun, check_apart, check_free, write_bytes
from verix_anon.files.store import path_text
from verix_anon.files.tables import check_table_name, table_aside

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """The files to write; None: none."""

    table: FilePath | None
    sheet: FilePath | None
    overwrite: bool

    @classmethod
    def for_release(
        cls,
        table: FilePath | None,
        sheet: FilePath | None,
        inputs: Sequence[object],
        overwrite: bool,
    ) -> "Places":
        """Raise unless both can be written, and replace neither an input nor each other."""
        if table is not None:
            check_table_name(table)
        for path, other in ((table, sheet), (sheet, table)):
            if path is not None:
                path_text(path)
                check_apart(path, filter(is_path, (*inputs, other)))
                check_free(path, overwrite=overwrite)
        return cls(table, sheet, overwrite)

    @contextmanager
    def table_aside(self, published: Published) -> Iterator[Aside | None]:
        """The table, written, to take its name in the block."""
        if self.table is None:
            yield None
            return
        rows, texts = published.compact(), published.texts
        with table_aside(rows, self.table, overwrite=self.overwrite, expanded=texts) as aside:
            yield aside

    @contextmanager
    def sheet_aside(self, text: str) -> Iterator[Aside | None]:
        """The sheet, written, to take its name in the block."""
        if self.sheet is None:
            yield None
            return
        with begun(self.sheet, overwrite=self.overwrite, folder=False, private=True) as aside:
            write_bytes(aside.path, text.encode() + b"\n")
            aside.settle()
            yield aside
