"""Whose table it is: names for the report, told to nobody else (spec §7.1)."""

from dataclasses import asdict, dataclass, fields

from verix_anon.errors import TableError
from verix_anon.fields import Fields

__all__ = ["Parties"]

MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """What the table, its controller and the processor are called; empty where nothing was said."""

    table_name: str = ""
    controller: str = ""
    processor: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value.isprintable() or len(value) > MOST_CHARACTERS:
                raise TableError(
                    f"{each.name} must be one line of at most {MOST_CHARACTERS} characters"
                )

    def to_json(self) -> dict[str, str]:
        """The names as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Fields) -> "Parties":
        """Read them back."""
        return cls(**{each.name: found.text(each.name) for each in fields(cls)})
