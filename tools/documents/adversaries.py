"""The table of adversaries and layers; tests/adversaries/test_named.py holds the layers to it."""

import inspect
import re
from collections.abc import Mapping

from tools.kit.verifier_cases import SEEN
from verix_anon.adversaries import ADVERSARIES, only
from verix_anon.client.verdict import LAYERS

FULL = SEEN
"""The layers that must see each adversary with the submission at hand."""
THIN = FULL | {"wide-bounds": {"splits"}, "cut-node": set[str]()}
"""The same without the submission. Witnesses mostly miss one small node: few paths lead there."""

HEAD = """# Adversaries and the layers that see them

Every adversary that is built in, by the name that `verix-anon demo --adversary NAME` and the
studies use. Made by `make reference` from the providers and from
`tests/adversaries/test_named.py`, which runs each of them and wants VIOLATION by at least these
layers, with the submission at hand and without it, on a table of 2,000 records. A layer that a row
does not name may fail as well, or be skipped since an earlier one failed. The column `thin` is
about that run: without the submission `splits`, `sentinels` and `twins` see a deviation with a
probability, and where it names no layer they mostly do not. How surely, and what no layer can see,
is in [the threat model](../threat-model.md#deviations).

Each does under the rule `importance-spread` what its misbehaviour means there, and is tested under
both rules. Some can misbehave under one rule alone: no labels are sent that could be flipped, or
there are no weights to mix. The column `rule` names it, `verix_anon.adversaries.only(NAME)` gives
it, `under(RULE)` all that can misbehave under a rule, and `demo` prepares the table by it.

"""


def adversaries_page() -> str:
    """The whole page."""
    rows = [
        ["name", "what it does", "rule", "seen by, full", "seen by, thin"],
        ["---"] * 5,
        *([f"`{name}`", *_described(name)] for name in ADVERSARIES),
    ]
    return HEAD + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _described(name: str) -> list[str]:
    rule = only(name)
    provider = ADVERSARIES[name](0)
    sentence = (inspect.getdoc(type(provider)) or "").split("\n\n")[0].replace("\n", " ")
    made = re.sub(r"(, )?seed=\d+", "", repr(provider)).replace("(, ", "(")
    where = "both" if rule is None else f"`{rule}`"
    return [f"{sentence} `{made}`", where, _listed(FULL, name), _listed(THIN, name)]


def _listed(seen: Mapping[str, set[str]], name: str) -> str:
    return ", ".join(f"`{layer}`" for layer in LAYERS if layer in seen[name]) or "by chance"
