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

This page lists every adversary that is built in: a provider that misbehaves in one way. The names
are those of `verix-anon demo --adversary NAME` and of the studies. `make reference` makes the page
from the code.

The last two columns name the layers that must fail, with the submission (`full`) and without it
(`thin`). `tests/adversaries/test_named.py` runs each adversary both ways, on a table of 2,000
records, and expects VIOLATION by at least these layers. Other layers may fail too, or be skipped
because an earlier one failed. Without the submission, `splits` sees a deviation only with a
probability. "by chance" means that it mostly misses this one. [The threat
model](../threat-model.md#deviations) says how certain each layer is, and what no layer can see.

Some adversaries can misbehave under one rule only. For example, under `importance-spread` no labels
are sent that could be flipped, and `variance-reduction` has no weights to mix. The column `rule`
names that rule, and `demo` prepares the table by it. In Python, `verix_anon.adversaries.only(NAME)`
returns it, and `under(RULE)` returns all adversaries that can misbehave under a rule. Each
adversary is tested under every rule under which it can misbehave.

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
