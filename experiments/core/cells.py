"""A study is many independent cells, each known by its content.

The key of a cell is the SHA-256 of its parameters, of the code that computes it and of the
versions of the packages it rests on. So a change of code or of a parameter runs exactly what it
concerns again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.core.sources import code_digest

__all__ = ["Cell", "Params", "Result"]

Params = Mapping[str, str | int | float]
# JSON, as it comes back from a file: what is in it is the study's own business.
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a study: `experiments.studies.<study>.study.run(params)`."""

    study: str
    params: Params

    @property
    def key(self) -> str:
        """What the cell's result is kept under."""
        text = json.dumps([self.study, self.params, code_digest(self.study)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
