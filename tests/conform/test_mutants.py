"""Providers that are wrong in one thing, each of which fails the case that was made for it.

They are the provider of examples/ with a line changed, asked in this process.
"""

from pathlib import Path
from types import ModuleType

import pytest

from conform.in_process import asked_example
from tools.kit.provider_cases import CONTRACTS, submission
from verix_anon.conform.kit import Kit, chosen
from verix_anon.conform.trials import try_provider

SOURCE = (Path(__file__).parents[2] / "examples" / "provider.py").read_text(encoding="utf-8")

IN_CONTRACTS = {
    "contract-name-twice": (" and len(names) == len(roles)", ""),
    "contract-no-quasi": ('"quasi" in roles and ', ""),
    "contract-unit-more": ("check_fields(column, {", 'check_fields(without(column, "unit"), {'),
    "contract-weight-more": ("check_fields(column, {", 'check_fields(without(column, "weight"), {'),
    "contract-true": ("type(found[name]) is kind and", "isinstance(found[name], kind) and"),
    "contract-role": ('"role": ["quasi", "target"]', '"role": str'),
    "contract-reserved-target": ("require(name not in", "require(is_target or name not in"),
    "contract-clear-target": (
        '"rank" for c in columns]',
        '"rank" for c in columns if c["role"] == "quasi"]',
    ),
    "contract-three-positions": ("or size == 2", 'or "size" in column or size == 2'),
    "contract-id-short": ("len(number) == 32 and ", ""),
    "contract-paper-colon": ('set("|:,")', 'set("|,")'),
    "contract-paper-comma": ('set("|:,")', 'set("|:")'),
}
"""A case that must be refused, and what keeps the example from answering it."""
WITHOUT = (
    "def without(found, name):\n    return {n: v for n, v in found.items() if n != name}\n\n\n"
)

COMPARED = 'canonical(json.loads(header.decode("utf-8"), **hook)) == canonical(true)'
PARTS = 'sorted(part.name for part in path.iterdir() if part.name[0] not in "._")'
NULLS = "    require(not any(column.null_count"
FITS = "        require(fits.all()"
ELSEWHERE = [
    ("one-chunk", "range(0, len(trackers), 65536)", "range(0, len(trackers) + 1, 65536)"),
    ("rounding", "l * l / nl + r * r / nr", "(l * l * nr + r * r * nl) / (nl * nr)"),
    ("rounding-order", "l * l / nl + r * r / nr", "l / nl * l + r / nr * r"),
    (
        "spread-binary32",
        'column["weight"] * int(values.max() - values.min())',
        'np.float32(column["weight"]) * np.float32(values.max() - values.min())',
    ),
    ("below-zero-paper", "{low:z.6f}", "{low:.6f}"),
    ("below-zero-paper", "{high:z.6f}", "{high:.6f}"),
    ("below-zero-paper", "{threshold:z.6f}", "{threshold:.6f}"),
    ("header-pretty", COMPARED, "header == canonical(true)"),
    ("header-fraction", COMPARED, 'json.loads(header.decode("utf-8"), **hook) == true'),
    ("header-long", " and len(header) <= 65536", ""),
    ("parts-names", PARTS, PARTS.replace("sorted(", "sorted((")[:-1] + "), key=str.lower)"),
    ("parts-names", 'part.name[0] not in "._"', 'part.name[0] != "_"'),
    ("parts-names", "found in (of, also.get(of))", "found == also.get(of, of)"),
    ("parts-not-ascii", ", name, re.A)", ", name)"),
    ("parts-folder", 'not in "._")', 'not in "._" and part.is_file())'),
    ("cluster-types-in-one-file", "sha256(data), {}", "sha256(data), CLUSTER"),
    ("value-target-in-parts", ".cast(pa.schema(types))", ".cast(pa.schema(types), safe=False)"),
    (
        "tracker-twice",
        NULLS,
        f'    require(len(set(table["tracker"].to_pylist())) == len(table), "twice")\n{NULLS}',
    ),
    (
        "value-half-a-day",
        FITS,
        f'        require(c["kind"] != "datetime" or (values % 1 == 0).all(), "half")\n{FITS}',
    ),
]
"""A case, and what in the example is changed into what."""


def example(old: str = "", new: str = "") -> ModuleType:
    assert old in SOURCE
    module = ModuleType("provider")
    exec(compile(WITHOUT + SOURCE.replace(old, new), "provider", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", IN_CONTRACTS)
def test_each_rule_of_a_contract_is_all_that_refuses_one(name: str) -> None:
    contract = submission(CONTRACTS[name]).contract
    with pytest.raises(ValueError, match=r"\w"):
        example().read_contract(contract)
    example(*IN_CONTRACTS[name]).read_contract(contract)


@pytest.mark.parametrize(("name", "old", "new"), ELSEWHERE)
def test_a_provider_that_is_wrong_in_one_thing_fails(
    small_kit: Kit, name: str, old: str, new: str
) -> None:
    cases = chosen(small_kit.cases, [name])
    (right,) = try_provider(small_kit, cases, asked_example(example()))
    (wrong,) = try_provider(small_kit, cases, asked_example(example(old, new)))
    assert (right.passed, wrong.passed) == (True, False)
