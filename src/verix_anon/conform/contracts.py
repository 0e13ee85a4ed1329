"""Submissions under contracts that a provider must refuse; each is wrong in one thing alone."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

from verix_anon.conform.folders import Draft, Refused, draft, job_of
from verix_anon.conform.tables import (
    CLEAR_TARGET,
    Sent,
    canonical,
    coded,
    labels,
    numeric,
    sent,
    whole,
)

__all__ = ["CONTRACTS", "clear", "spread"]

Fields = dict[str, Any]
Change = Callable[[Fields], object]
N = 24


def clear(**terms: object) -> Sent:
    """A small submission in clear that would be answered."""
    columns = [numeric("a", whole(60, N, 12)), numeric("b", whole(61, N, 9))]
    return sent(columns, labels(62, N, columns[0][1]), **terms)


def spread(**terms: object) -> Sent:
    """A small coded submission without a target that would be answered."""
    return coded([1, 9, 4, 1], rule="importance-spread", k=3, **terms)


def _changed(change: Change, base: Callable[[], Sent] = clear) -> Callable[[], Draft]:
    """The submission under its contract with something changed, in canonical form."""

    def make() -> Draft:
        made = base()
        fields = json.loads(made.contract)
        change(fields)
        return _under(made, canonical(fields))

    return make


def _under(made: Sent, contract: bytes) -> Draft:
    changed = replace(made, contract=contract)
    return draft(changed, job_of(json.loads(contract)["columns"], changed))


def _with(**terms: object) -> Callable[[], Draft]:
    return _changed(lambda fields: fields.update(terms))


def _written(change: Callable[[bytes], bytes]) -> Callable[[], Draft]:
    """The submission with the bytes of its contract changed."""

    def make() -> Draft:
        made = clear()
        return _under(made, change(made.contract))

    return make


def _reversed(data: bytes) -> bytes:
    fields = dict(reversed(json.loads(data).items()))
    return json.dumps(fields, separators=(",", ":")).encode()


def _coded() -> Sent:
    return coded(None, k=3)


def _column(j: int, base: Callable[[], Sent] = clear, **terms: object) -> Callable[[], Draft]:
    return _changed(lambda fields: fields["columns"][j].update(terms), base)


def _of(*kept: int) -> Callable[[], Draft]:
    """The submission of some of its columns alone."""

    def make() -> Draft:
        made = clear()
        fields = json.loads(made.contract)
        fields["columns"] = [fields["columns"][j] for j in kept]
        values = [made.columns[j] for j in kept]
        return _under(replace(made, columns=values), canonical(fields))

    return make


def _twice(role: str) -> Callable[[], Draft]:
    """The submission with a copy of its target in another role."""

    def make() -> Draft:
        made = clear()
        fields = json.loads(made.contract)
        fields["columns"].append({**deepcopy(fields["columns"][1]), "name": "z", "role": role})
        values = [*made.columns, made.columns[1]]
        return _under(replace(made, columns=values), canonical(fields))

    return make


def _half_coded() -> Draft:
    made = clear()
    fields = json.loads(made.contract)
    fields["columns"][2] = {"name": "b", "role": "quasi", "kind": "rank", "size": 9}
    return _under(made, canonical(fields))


def _clear_target() -> Draft:
    made = _coded()
    fields = json.loads(made.contract)
    fields["columns"][1] = CLEAR_TARGET
    return _under(made, canonical(fields))


def _paper_name(name: str) -> Refused:
    return _refused(
        f"A name with `{name[1]}` under the paper's commitment.",
        _column(0, lambda: clear(commitment="paper"), name=name),
    )


def _spread_with_target() -> Draft:
    made = _coded()
    fields = json.loads(made.contract)
    fields["rule"] = "importance-spread"
    for column in fields["columns"]:
        if column["role"] == "quasi":
            column["weight"] = 1
    return _under(made, canonical(fields))


def _refused(title: str, make: Callable[[], Draft]) -> Refused:
    return Refused(title, "3", make)


CONTRACTS: dict[str, Refused] = {
    "contract-spaces": _refused(
        "Not the canonical form: a blank.", _written(lambda data: data.replace(b":", b": ", 1))
    ),
    "contract-key-order": _refused(
        "Not the canonical form: another order of keys.",
        _written(_reversed),
    ),
    "contract-key-twice": _refused(
        "A field that stands twice.", _written(lambda data: b'{"k":2,' + data[1:])
    ),
    "contract-fraction": _refused(
        "An integer that is written 2.0.",
        _written(lambda data: data.replace(b'"k":2,', b'"k":2.0,')),
    ),
    "contract-surrogate": _refused(
        "A label that is no valid Unicode.",
        _written(lambda data: data.replace(b'"yes"', b'"\\ud800"')),
    ),
    "contract-unknown-field": _refused("A field that the contract does not have.", _with(more=1)),
    "contract-missing-field": _refused(
        "A field that is missing.", _changed(lambda fields: fields.pop("max_depth"))
    ),
    "contract-format": _refused("Another format.", _with(format="verix/contract/9")),
    "contract-id": _refused("A submission_id in capitals.", _with(submission_id="0A" * 16)),
    "contract-id-short": _refused("A submission_id of 31 digits.", _with(submission_id="0" * 31)),
    "contract-k": _refused("k = 1.", _with(k=1)),
    "contract-min-leaf": _refused("min_leaf below k.", _with(k=4, min_leaf=3)),
    "contract-max-depth": _refused("max_depth beyond 50.", _with(max_depth=51)),
    "contract-no-depth": _refused("max_depth = 0.", _with(max_depth=0)),
    "contract-true": _refused("max_depth = true.", _with(max_depth=True)),
    "contract-rule": _refused("A rule that is none.", _with(rule="information-gain")),
    "contract-commitment": _refused("A commitment that is none.", _with(commitment="none")),
    "contract-reserved-name": _refused("A column named `leaf`.", _column(0, name="leaf")),
    "contract-reserved-target": _refused("A target named `leaf`.", _column(1, name="leaf")),
    "contract-name-twice": _refused("Two columns of one name.", _column(2, name="a")),
    "contract-role": _refused("A role that is not sent.", _column(0, role="kept")),
    "contract-unit": _refused("A datetime column without its unit.", _column(0, kind="datetime")),
    "contract-unit-other": _refused(
        "A unit that is none.", _column(0, kind="datetime", unit="hour")
    ),
    "contract-unit-more": _refused("A number with a unit.", _column(0, unit="day")),
    "contract-label-type": _refused(
        "A category that is no text.", _column(1, categories=["no", 1])
    ),
    "contract-label-twice": _refused(
        "A label that stands twice.", _column(1, categories=["no", "no"])
    ),
    "contract-three-classes": _refused(
        "A target of three classes.", _column(1, categories=["no", "yes", "more"])
    ),
    "contract-three-positions": _refused(
        "A coded target of three classes.", _column(1, _coded, size=3)
    ),
    "contract-no-quasi": _refused("A target, and no quasi-identifier.", _of(1)),
    "contract-no-target": _refused("variance-reduction without a target.", _of(0, 2)),
    "contract-two-targets": _refused("Two targets.", _twice("target")),
    "contract-half-coded": _refused("One column coded, the others in clear.", _half_coded),
    "contract-clear-target": _refused("Coded columns, and a target in clear.", _clear_target),
    "contract-paper-coded": _refused(
        "The paper's commitment over coded columns.",
        _changed(lambda fields: fields.update(commitment="paper"), _coded),
    ),
    "contract-paper-name": _paper_name("a|b"),
    "contract-paper-colon": _paper_name("a:b"),
    "contract-paper-comma": _paper_name("a,b"),
    "contract-spread-target": _refused(
        "importance-spread with a target that is sent.", _spread_with_target
    ),
    "contract-no-weight": _refused(
        "importance-spread with a column without a weight.",
        _changed(lambda fields: fields["columns"][1].pop("weight"), spread),
    ),
    "contract-weight-more": _refused(
        "variance-reduction with a weight.", _column(0, _coded, weight=1)
    ),
    "contract-weight": _refused(
        "A weight with which a score could pass 2^52.",
        _column(0, spread, weight=2**52),
    ),
    "contract-weight-by-one": _refused(
        "A weight with which a score could pass 2^52 by little.",
        _column(1, spread, weight=2**50 + 1),
    ),
    "contract-no-weight-at-all": _refused("A weight of 0.", _column(1, spread, weight=0)),
    "contract-size": _refused("2^31 positions.", _column(0, _coded, size=2**31)),
}
