"""The contract has one form in bytes, and everything else is refused in a sentence."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import SUBMISSION_ID, TARGET, CountedName, categorical, numeric
from verix_anon.errors import ContractError
from verix_anon.protocol.contract import Column, Commitment, Contract, Kind, Role, Rule, Unit

steady = settings(deadline=None, derandomize=True)

DATE = Column(name="born", kind=Kind.DATETIME, unit=Unit.DAY)
COLOUR = Column(name="col\u00f6ur", kind=Kind.CATEGORICAL, categories=("rot", "gr\u00fcn \u2713"))
CONTRACT = Contract(
    submission_id=SUBMISSION_ID, k=5, min_leaf=10, columns=(numeric("age"), TARGET, DATE, COLOUR)
)
# Written by hand from spec §3 and RFC 8785: fields by name, no blanks, text as it is.
GOLDEN = (
    '{"columns":['
    '{"kind":"numeric","name":"age","role":"quasi"},'
    '{"categories":["no","yes"],"kind":"categorical","name":"y","role":"target"},'
    '{"kind":"datetime","name":"born","role":"quasi","unit":"day"},'
    '{"categories":["rot","gr\u00fcn \u2713"],"kind":"categorical","name":"col\u00f6ur",'
    '"role":"quasi"}],'
    '"commitment":"binding","format":"verix/contract/2","k":5,"max_depth":50,"min_leaf":10,'
    '"rule":"variance-reduction","submission_id":"00112233445566778899aabbccddeeff"}'
).encode()
Fields = dict[str, Any]


def canonical(fields: object) -> bytes:
    """RFC 8785 for text and small integers under ASCII names, without the package."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def changed(**fields: object) -> bytes:
    return canonical(json.loads(GOLDEN) | fields)


def with_column(place: int = 0, **fields: object) -> bytes:
    """The contract with one column changed; a field that is None is left out."""
    contract = json.loads(GOLDEN)
    column = contract["columns"][place] | fields
    contract["columns"][place] = {name: v for name, v in column.items() if v is not None}
    return canonical(contract)


def refused(data: bytes, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        Contract.from_bytes(data)


def test_golden_bytes() -> None:
    assert CONTRACT.to_bytes() == GOLDEN == canonical(json.loads(GOLDEN))
    assert CONTRACT.digest == hashlib.sha256(GOLDEN).digest()
    assert CONTRACT.digest.hex() == (
        "957f6e194d56d07e4033bae8011df9f56a7fc0c0a6e6d4ddf1221ce82739952b"
    )


def test_round_trip() -> None:
    assert Contract.from_bytes(GOLDEN) == CONTRACT
    assert Contract.from_bytes(GOLDEN).digest == CONTRACT.digest


def test_parts() -> None:
    assert CONTRACT.min_leaf == 10
    assert [column.name for column in CONTRACT.quasi] == ["age", "born", "col\u00f6ur"]
    assert CONTRACT.target is TARGET


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\0",
        '"\\/\b\f\n\r\t',
        "\x1f\x7f\u2028",
        "\U0001f600",
        "e\u0301",
        "\uffff",
        "\ue000",
    ],
)
def test_any_valid_text_survives(text: str) -> None:
    column = Column(name=text, kind=Kind.CATEGORICAL, categories=(text, text + "'"))
    contract = replace(CONTRACT, columns=(column, TARGET))
    assert Contract.from_bytes(contract.to_bytes()) == contract


@pytest.mark.parametrize("k", [2, 2**31 - 1])
@pytest.mark.parametrize("max_depth", [1, 50])
@pytest.mark.parametrize("commitment", list(Commitment))
def test_limits_are_allowed(k: int, max_depth: int, commitment: Commitment) -> None:
    contract = replace(CONTRACT, k=k, min_leaf=k, max_depth=max_depth, commitment=commitment)
    assert Contract.from_bytes(contract.to_bytes()) == contract


SPREAD = (
    b'{"columns":[{"kind":"rank","name":"q0","role":"quasi","size":74,"weight":61693145580417},'
    b'{"kind":"rank","name":"q1","role":"quasi","size":1,"weight":4503599627370496}],'
    b'"commitment":"binding","format":"verix/contract/2","k":5,"max_depth":50,"min_leaf":5,'
    b'"rule":"importance-spread","submission_id":"00112233445566778899aabbccddeeff"}'
)


def spread(place: int = 0, contract: Fields | None = None, **fields: object) -> bytes:
    """The contract above with one column changed; a field that is None is left out."""
    made = json.loads(SPREAD) | (contract or {})
    column = made["columns"][place] | fields
    made["columns"][place] = {name: v for name, v in column.items() if v is not None}
    return canonical(made)


def test_a_coded_contract_without_a_target() -> None:
    contract = Contract.from_bytes(SPREAD)
    assert contract.to_bytes() == SPREAD
    assert contract.is_coded
    assert contract.target is None
    assert (contract.rule, contract.min_leaf) == (Rule.IMPORTANCE_SPREAD, 5)
    assert [(column.size, column.weight) for column in contract.quasi] == [
        (74, 2**52 // 73),
        (1, 2**52),
    ]


def test_a_coded_contract_with_a_target() -> None:
    ranks = [{"kind": "rank", "name": name, "role": "quasi", "size": 3} for name in ("q0", "q1")]
    target = {"kind": "rank", "name": "y", "role": "target", "size": 2}
    made = Contract.from_bytes(changed(columns=[ranks[0], target, ranks[1]]))
    assert made.target is not None
    assert made.target.n_values == 2
    refused(changed(columns=[*ranks, target | {"size": 3}]), "'y' must have two classes")
    refused(changed(columns=[*ranks, target], commitment="paper"), "needs values in clear")
    refused(
        changed(columns=[ranks[0] | {"weight": 1}, target]), "exactly one target and no weights"
    )
    mixed = [{"kind": "numeric", "name": "x", "role": "quasi"}, *ranks, target]
    refused(changed(columns=mixed), "all columns of a contract are coded")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (spread(weight=None), "a weight for every quasi-identifier"),
        (spread(weight=0), "weight must be a whole number from 1 to 61693145580417, not 0"),
        (spread(weight=2**52 // 73 + 1), "weight must be a whole number from 1 to"),
        (spread(1, weight=2**52 + 1), "weight must be a whole number from 1 to"),
        (spread(weight=1.5), "weight must be a whole number"),
        (spread(weight=True), "weight must be a whole number"),
        (spread(size=None), "field 'size' is missing"),
        (spread(size=0), "size must be a whole number from 1"),
        (spread(size=2**31), "size must be a whole number from 1"),
        (spread(size="74"), "size must be a whole number"),
        (spread(categories=["a"]), "unknown field 'categories'"),
        (spread(role="target", size=2), "and no weight"),
        (spread(role="target", size=2, weight=None), "has no target"),
        (spread(kind="numeric", size=None), "unknown field 'weight'"),
        (spread(contract={"commitment": "paper"}), "needs values in clear"),
        (spread(contract={"rule": "variance-reduction"}), "exactly one target and no weights"),
        (changed(rule="importance-spread"), "has no target, and a weight"),
        (with_column(weight=5), "unknown field 'weight'"),
    ],
)
def test_what_a_rule_may_be_joined_with(data: bytes, message: str) -> None:
    refused(data, message)


@pytest.mark.parametrize("name", sorted(json.loads(GOLDEN)))
def test_every_field_is_required(name: str) -> None:
    fields = json.loads(GOLDEN)
    del fields[name]
    # The format comes first, so that a contract of another version is named as such.
    problem = "format must be .*, not None" if name == "format" else f"field '{name}' is missing"
    refused(canonical(fields), problem)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(note="x"), "unknown field 'note'"),
        (
            changed(format="verix/contract/1"),
            "format must be 'verix/contract/2', not 'verix/contract/1'",
        ),
        (
            changed(rule="blind"),
            "rule must be one of variance-reduction, importance-spread, not 'blind'",
        ),
        (changed(commitment="none"), "commitment must be one of binding, paper, not 'none'"),
        (changed(commitment=["paper"]), "commitment must be"),
        (changed(k=1, min_leaf=2), "k must be a whole number from 2"),
        (changed(k=-5, min_leaf=-10), "k must be a whole number from 2"),
        (changed(k=True, min_leaf=2), "k must be a whole number"),
        (changed(k=5.0), "k must be a whole number"),
        (changed(k="5"), "k must be a whole number"),
        (changed(k=None), "k must be a whole number"),
        (changed(k=2**31, min_leaf=2**32), "k must be a whole number"),
        (changed(k=10**4000), "k must be a whole number"),
        (changed(min_leaf=4), "min_leaf must be a whole number from 5 to 2147483647, not 4"),
        (changed(min_leaf=2**31), "min_leaf must be a whole number from 5"),
        (changed(min_leaf=True), "min_leaf must be a whole number"),
        (changed(min_leaf="10"), "min_leaf must be a whole number"),
        (changed(min_leaf=10.0), "min_leaf must be a whole number, not 10.0"),
        (changed(max_depth=0), "max_depth must be a whole number from 1 to 50, not 0"),
        (changed(max_depth=51), "max_depth must be a whole number from 1 to 50, not 51"),
        (changed(max_depth=True), "max_depth must be a whole number"),
        (changed(max_depth=50.0), "max_depth must be a whole number"),
        (changed(submission_id="0" * 31), "32 lower-case hexadecimal digits"),
        (changed(submission_id="0" * 33), "32 lower-case hexadecimal digits"),
        (changed(submission_id="A" * 32), "32 lower-case hexadecimal digits"),
        (changed(submission_id="0" * 32 + "\n"), "32 lower-case hexadecimal digits"),
        (changed(submission_id="\u0660" * 32), "32 lower-case hexadecimal digits"),
        (changed(submission_id=7), "submission_id must be text"),
        (changed(columns={}), "columns must be a list"),
        (changed(columns=[]), "at least one quasi-identifier"),
        (changed(columns=["age"]), "columns\\[0\\] must hold named fields, not 'age'"),
        (changed(columns=json.loads(GOLDEN)["columns"][1:2]), "at least one quasi-identifier"),
        (with_column(1, role="quasi"), "exactly one target .* has 0 targets"),
        (with_column(3, role="target"), "exactly one target .* has 2 targets"),
        (with_column(role="target"), "target 'age' must have two classes"),
        (with_column(1, categories=["a", "b", "c"]), "target 'y' must have two classes"),
        (with_column(1, categories=["a"]), "target 'y' must have two classes"),
        (with_column(1, categories=["a", "a"]), "column 'y' names a category twice"),
        (with_column(3, categories=["a", "b", "a"]), "names a category twice"),
        (with_column(3, categories=[]), "must have at least one category"),
        (with_column(3, categories=["a", 1]), "categories must be a list of text"),
        (with_column(3, categories="ab"), "categories must be a list"),
        (with_column(3, categories=None), "field 'categories' is missing"),
        (with_column(categories=["a"]), "unknown field 'categories'"),
        (with_column(unit="day"), "columns\\[0\\]: unknown field 'unit'"),
        (with_column(2, unit=None), "columns\\[2\\]: field 'unit' is missing"),
        (with_column(2, unit="ns"), "unit must be one of day, s, ms, us, not 'ns'"),
        (
            with_column(kind="text"),
            "kind must be one of numeric, datetime, categorical, rank, not 'text'",
        ),
        (with_column(kind=None), "field 'kind' is missing"),
        (with_column(kind=["numeric"]), "kind must be"),
        (with_column(role="kept"), "role must be one of quasi, target, not 'kept'"),
        (with_column(role=None), "field 'role' is missing"),
        (with_column(name=None), "field 'name' is missing"),
        (with_column(name=3), "name must be text"),
        (with_column(note="x"), "columns\\[0\\]: unknown field 'note'"),
        (with_column(name="born"), "column name 'born' occurs twice"),
        (with_column(name="y"), "column name 'y' occurs twice"),
        *((with_column(name=n), f"'{n}' is reserved") for n in ("row", "tracker", "leaf")),
    ],
)
def test_refusals(data: bytes, message: str) -> None:
    refused(data, message)


@pytest.mark.parametrize("name", ["a|b", "a:b", "a,b"])
def test_paper_commitment_refuses_its_separators(name: str) -> None:
    columns = (Column(name=name, kind=Kind.NUMERIC), TARGET)
    binding = replace(CONTRACT, columns=columns)
    assert Contract.from_bytes(binding.to_bytes()) == binding
    with pytest.raises(ContractError, match="which the paper's commitment cannot represent"):
        replace(binding, commitment=Commitment.PAPER)
    # The target's name is never hashed as text.
    target = replace(TARGET, name=name)
    replace(CONTRACT, columns=(DATE, target), commitment=Commitment.PAPER)


@pytest.mark.parametrize(
    "data",
    [
        GOLDEN + b"\n",
        b" " + GOLDEN,
        GOLDEN.replace(b'":', b'": '),
        GOLDEN.replace(b'"k":5', b'"k":5.0e0'),
        GOLDEN.replace(b'"k":5', b'"k":05'),
        GOLDEN.replace(b'"k":5', b'"k":4,"k":5'),
        GOLDEN.replace(b'"age"', b'"ag\\u0065"'),
        GOLDEN.replace("\u00fc".encode(), b"\\u00fc"),
        GOLDEN.replace(b"verix/", b"verix\\/"),
        GOLDEN.replace(b'"kind":"numeric","name":"age"', b'"name":"age","kind":"numeric"'),
        GOLDEN.replace(b'"name":"age"', b'"name":"gone","name":"age"'),
        json.dumps(json.loads(GOLDEN)).encode(),
        bytes([0xEF, 0xBB, 0xBF]) + GOLDEN,
        GOLDEN.decode().encode("utf-16"),
    ],
)
def test_same_meaning_in_other_bytes_is_refused(data: bytes) -> None:
    assert data != GOLDEN
    refused(data, "not canonical JSON|not JSON in UTF-8|whole number")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON in UTF-8"),
        (GOLDEN.replace(b"age", b"\xff\xfe\xff"), "not JSON in UTF-8"),
        (GOLDEN.replace(b"age", b"\xed\xa0\x80"), "not JSON in UTF-8"),
        (GOLDEN.replace(b"age", b"\\ud800"), "a column's name .* is not valid Unicode text"),
        (GOLDEN.replace(b"rot", b"\\udfff"), "a category of column .* is not valid Unicode"),
        (GOLDEN[:-1], "not JSON"),
        (b"null", "not a JSON object"),
        (b"[" + GOLDEN + b"]", "not a JSON object"),
        (b'"' + b"a" * 10 + b'"', "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (GOLDEN.replace(b'"k":5', b'"k":' + b"9" * 100_000), "not JSON"),
        (GOLDEN.replace(b'"k":5', b'"k":NaN'), "NaN is not a finite number"),
        (GOLDEN.replace(b'"k":5', b'"k":Infinity'), "Infinity is not a finite number"),
        (GOLDEN.replace(b'"k":5', b'"k":1e999'), "k must be a whole number"),
        (GOLDEN.replace(b'"min_leaf":10', b'"min_leaf":NaN'), "NaN is not a finite number"),
        (
            GOLDEN.replace(b'"min_leaf":10', b'"min_leaf":-Infinity'),
            "-Infinity is not a finite number",
        ),
    ],
    ids=range(18),
)
def test_hostile_bytes(data: bytes, message: str) -> None:
    refused(data, message)


@pytest.mark.parametrize("field", ["format", "rule", "commitment", "min_leaf", "k"])
def test_nesting_at_the_edge_of_the_stack(field: str) -> None:
    for depth in range(100, 1100, 25):
        nested = b"[" * depth + b"]" * depth
        head, tail = changed(**{field: "@"}).split(b'"@"')
        refused(head + nested + tail, field + "|not JSON")


def test_names_of_many_columns_are_not_each_compared_with_all() -> None:
    # Quadratic work here would let one small request keep a provider busy for minutes.
    names = [CountedName(f"x{i}") for i in range(2_000)]
    columns = (*map(numeric, names), *[numeric("z")] * 2, TARGET)
    CountedName.n_compared = 0
    with pytest.raises(ContractError, match="'z' occurs twice"):
        replace(CONTRACT, columns=columns)
    assert CountedName.n_compared < 10 * len(names)


@pytest.mark.parametrize(
    "column",
    [
        {"kind": Kind.NUMERIC, "unit": Unit.DAY},
        {"kind": Kind.DATETIME},
        {"kind": Kind.CATEGORICAL},
        {"kind": Kind.CATEGORICAL, "categories": ("a",), "unit": Unit.DAY},
        {"kind": Kind.NUMERIC, "categories": ("a",)},
        {"kind": Kind.NUMERIC, "role": Role.TARGET},
    ],
)
def test_columns_are_checked_when_made(column: Any) -> None:
    with pytest.raises(ContractError):
        Column(name="x", **column)


@steady
@given(st.data())
def test_damaged_bytes_never_surprise(data: st.DataObject) -> None:
    damaged = bytearray(GOLDEN)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.sampled_from(b'0159"\\{}[],:eE.-+ atu\x00\x7f\xc3\xff'))
    damaged = damaged[: data.draw(st.sampled_from([len(damaged), at_most(data, damaged)]))]
    try:
        contract = Contract.from_bytes(bytes(damaged))
    except ContractError:
        return
    assert contract.to_bytes() == bytes(damaged)
    assert (contract == CONTRACT) is (bytes(damaged) == GOLDEN)


def at_most(data: st.DataObject, damaged: bytearray) -> int:
    return data.draw(st.integers(0, len(damaged)))


@steady
@given(st.binary(max_size=80))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ContractError):
        Contract.from_bytes(data)


def test_contracts_differ_in_digest_when_anything_differs() -> None:
    others = [
        CONTRACT,
        replace(CONTRACT, k=6),
        replace(CONTRACT, max_depth=49),
        replace(CONTRACT, submission_id="f" * 32),
        replace(CONTRACT, commitment=Commitment.PAPER),
        replace(CONTRACT, columns=CONTRACT.columns[::-1]),
        replace(CONTRACT, columns=(*CONTRACT.columns, categorical("c", 2))),
        replace(CONTRACT, columns=(*CONTRACT.columns, categorical("c", 3))),
    ]
    assert len({contract.digest for contract in others}) == len(others)
