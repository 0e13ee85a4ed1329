"""What release() returns: a table to publish, and its privacy sheet."""

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, cast

from verix_anon.client.notebook import as_list, as_table
from verix_anon.client.release.assemble import Published
from verix_anon.client.release.sheet import Sheet
from verix_anon.fields import to_json
from verix_anon.protocol.contract import Digest

__all__ = ["Released"]

TableT = TypeVar("TableT")


@dataclass(frozen=True, eq=False, kw_only=True)
class Released(Generic[TableT]):
    """A table to publish, and what was measured on it."""

    root: Digest
    """Of the delivery it was made from."""
    published: Published
    sheet: Sheet
    n_classes: int
    """How many classes of records look alike in the table."""
    overridden: tuple[str, ...]
    """What `force` passed over."""
    warnings: tuple[str, ...]

    @cached_property
    def table(self) -> TableT:
        """The table, of the kind that was given; made when it is first asked for."""
        return cast("TableT", self.published.native())

    def __repr__(self) -> str:
        return (
            f"<Released: {self.sheet.n_records:,} records in {self.n_classes:,} classes,"
            f" k {self.sheet.k:,}, {len(self.warnings)} warning(s)>"
        )

    def _repr_html_(self) -> str:
        return as_table(self.sheet.facts().items()) + as_list((*self.overridden, *self.warnings))

    def to_json(self) -> str:
        """The privacy sheet as JSON, with the root, the warnings and what was overridden."""
        return to_json(
            {
                **self.sheet.to_dict(),
                "root": self.root.hex(),
                "warnings": list(self.warnings),
                "overridden": list(self.overridden),
            },
        )
