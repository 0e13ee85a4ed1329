"""Where a release goes: the table to publish, its dictionary, and the sheet for the owner."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from verix_anon.client.given import FilePath, is_path
from verix_anon.client.release.assemble import Published
from verix_anon.client.release.schema import schema_path
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
        found = cls(table, sheet, overwrite)
        wanted = [path for path in (table, sheet, found.schema) if path is not None]
        for path in wanted:
            path_text(path)
            check_apart(path, filter(is_path, (*inputs, *(o for o in wanted if o is not path))))
            check_free(path, overwrite=overwrite)
        return found

    @property
    def schema(self) -> str | None:
        """The dictionary stands beside the table."""
        return None if self.table is None else schema_path(path_text(self.table))

    @contextmanager
    def table_aside(self, published: Published) -> Iterator[Aside | None]:
        """The table, written, to take its name in the block."""
        if self.table is None:
            yield None
            return
        rows, texts = published.parts(), published.texts
        with table_aside(rows, self.table, overwrite=self.overwrite, expanded=texts) as aside:
            yield aside

    @contextmanager
    def texts_aside(self, sheet: str, schema: str) -> Iterator[list[Aside]]:
        """The sheet and the dictionary, written, to take their names in the block."""
        with ExitStack() as stack:
            asides = []
            for path, text, private in ((self.sheet, sheet, True), (self.schema, schema, False)):
                if path is not None:
                    beginning = begun(path, overwrite=self.overwrite, folder=False, private=private)
                    aside = stack.enter_context(beginning)
                    write_bytes(aside.path, text.encode() + b"\n")
                    aside.settle()
                    asides.append(aside)
            yield asides
