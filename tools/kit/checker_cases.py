"""Make the cases that a checker is shown: true proofs, receipts, verdicts and logs, and forgeries.

Each is a row of a table: what is changed about true files, and the words that ask about them, such
as `prove check {proof} --root …`. A forged proof is as consistent as can be: its root follows from
what was `committed`, as if a provider had committed to it. What was `claimed` changes after that.
All of it is made by the text of the specification, without the code that checks: it is the exam.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tools.kit.independent import f64, sha256, u64
from tools.kit.writing import Made, UnmadeCase
from verix_anon.conform.kit import CaseKind

Json = dict[str, Any]
Change = Callable[[Any], object]
Bytes = Callable[[bytes], bytes]

TYPE = "application/vnd.in-toto+json"
DER = bytes.fromhex("302a300506032b6570032100")
ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL = {
    "zero": bytes(32),
    "one": b"\1" + bytes(31),
    "minus-one": b"\xec" + b"\xff" * 30 + b"\x7f",
    "eighth": bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    "other-eighth": bytes.fromhex(
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
    ),
    "signed-one": b"\1" + bytes(30) + b"\x80",
    "noncanonical": b"\xee" + b"\xff" * 30 + b"\x7f",
    "beyond-field": b"\xf0" + b"\xff" * 30 + b"\x7f",
}
"""Points of small order (spec §8.5), and encodings of y that are 2^255 - 19 or more."""


EXITS = {CaseKind.HOLDS: 0, CaseKind.FORGED: 1, CaseKind.UNUSABLE: 2}
"""The exit code of a checker (spec §10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerCase:
    """The files of one case, and the words that ask about them."""

    id: str
    kind: CaseKind
    section: str
    title: str
    words: list[str]
    files: dict[str, bytes]

    def write(self, kit: Path) -> Made:
        """Write the files into a kit's folder."""
        place = f"checks/{self.id}"
        (kit / place).mkdir(parents=True)
        for name, data in self.files.items():
            (kit / place / name).write_bytes(data)
        paths = {name: f"{place}/{name}" for name in self.files}
        return paths, {"exit": EXITS[self.kind], "words": self.words}


def checker_cases() -> list[CheckerCase]:
    """Every case with its files."""
    return [*PROOFS, *_proof_bytes(), *RECEIPTS, *_weak_keys(), *SERIES]


def for_checkers() -> list[UnmadeCase]:
    """What a checker is shown."""
    return [
        UnmadeCase(
            id=case.id, title=case.title, section=case.section, kind=case.kind, make=case.write
        )
        for case in checker_cases()
    ]


def _case(
    kind: CaseKind, name: str, section: str, title: str, make: Callable[[], tuple[Json, list[str]]]
) -> CheckerCase:
    files, words = make()
    return CheckerCase(id=name, kind=kind, section=section, title=title, words=words, files=files)


# Proofs of inclusion (spec §14)

LABELS = ["straße", '\U0001d54f \u2028 \\ " \u0007', "z"]
CONTRACT: Json = {
    "format": "verix/contract/2",
    "submission_id": "0123456789abcdef" * 2,
    "k": 2,
    "min_leaf": 3,
    "max_depth": 4,
    "rule": "variance-reduction",
    "commitment": "binding",
    "columns": [
        {"name": "amount", "role": "quasi", "kind": "numeric"},
        {"name": "naïve |", "role": "quasi", "kind": "categorical", "categories": LABELS},
        {"name": "born", "role": "quasi", "kind": "datetime", "unit": "day"},
        {"name": "y", "role": "target", "kind": "categorical", "categories": ["no", "yes"]},
    ],
}
CODED: Json = {
    **CONTRACT,
    "rule": "importance-spread",
    "columns": [
        {"name": f"q{i}", "role": "quasi", "kind": "rank", "size": 9, "weight": 2**49}
        for i in range(3)
    ],
}


def _name(text: str) -> str:
    return sha256(text.encode()).hex()


def _proof() -> Json:
    """A true proof of a record in clear: four records, three splits above them."""
    members = [{"row": row, "tracker": _name(f"tracker {row}")} for row in (2, 3, 70000, 2**40)]
    splits = [(2, -3.0, "right"), (0, 1e21, "left"), (1, 1.0, "left")]
    return {
        "format": "verix/proof/1",
        "submission": _name("submission"),
        "contract": deepcopy(CONTRACT),
        "tracker": members[1]["tracker"],
        "count": 4,
        "bounds": [
            {"min": -5e-324, "max": 123456.78125},
            {"min": 0.0, "max": 1.0},
            {"min": -2.0, "max": 400.0},
        ],
        "members": members,
        "path": [
            {"column": c, "threshold": t, "side": side, "sibling": _name(f"{c}")}
            for c, t, side in splits
        ],
    }


def _root(proof: Json) -> str:
    """The root that follows (spec §6.2)."""
    pairs = [f64(pair[name]) for pair in proof["bounds"] for name in ("min", "max")]
    members = [u64(each["row"]) + bytes.fromhex(each["tracker"]) for each in proof["members"]]
    top = sha256(b"\0", u64(proof["count"]), *pairs, *members)
    for turn in proof["path"]:
        sides = [top, bytes.fromhex(turn["sibling"])]
        sides = sides if turn["side"] == "left" else sides[::-1]
        top = sha256(b"\1", turn["column"].to_bytes(4, "little"), f64(turn["threshold"]), *sides)
    contract = sha256(rfc8785.dumps(proof["contract"]))
    return sha256(b"\3", contract, bytes.fromhex(proof["submission"]), top).hex()


def _shown_proof(
    committed: Change, claimed: Change, spoil: Bytes, asked: Callable[[Json], list[str]]
) -> tuple[Json, list[str]]:
    proof = _proof()
    committed(proof)
    proof["root"] = _root(proof)
    words = ["prove", "check", "{proof}", *asked(proof)]
    claimed(proof)
    return {"proof": spoil(rfc8785.dumps(proof))}, words


def _same(value: Any) -> Any:
    return value


def _of(*words: str) -> Callable[[Json], list[str]]:
    """Ask about the root of the proof, and more."""
    return lambda proof: ["--root", proof["root"], *words]


def _set(*path: str | int, to: Any) -> Change:
    """Set what lies at the path; a function of the old value gives the new one."""

    def change(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] = to(found[path[-1]]) if callable(to) else to

    return change


def _both(*changes: Change) -> Change:
    return lambda proof: [change(proof) for change in changes]


def _true_proof(
    name: str,
    title: str,
    committed: Change = _same,
    claimed: Change = _same,
    asked: Callable[[Json], list[str]] | None = None,
) -> CheckerCase:
    make = partial(_shown_proof, committed, claimed, _same, asked or _of())
    return _case(CaseKind.HOLDS, f"proof-{name}", "14", title, make)


def _false_proof(
    name: str,
    title: str,
    committed: Change = _same,
    claimed: Change = _same,
    spoil: Bytes = _same,
    asked: Callable[[Json], list[str]] | None = None,
    kind: CaseKind = CaseKind.FORGED,
) -> CheckerCase:
    make = partial(_shown_proof, committed, claimed, spoil, asked or _of())
    return _case(kind, f"proof-{name}", "14", title, make)


def _coded(proof: Json) -> None:
    proof["contract"] = deepcopy(CODED)
    proof["bounds"] = [{"min": float(i), "max": 8.0} for i in range(3)]
    proof["path"] = [{**turn, "threshold": 0.0, "side": "right"} for turn in proof["path"]]
    proof["path"][1] = {**proof["path"][1], "column": 2}
    proof["path"][2] = {**proof["path"][2], "threshold": 8.0, "side": "left"}


def _zeros(proof: Json) -> None:
    proof["bounds"][0] = {"min": 0.0, "max": 0.0}
    proof["path"][1]["threshold"] = 0.0


QUASI = ("contract", "columns")
PROOFS = [
    _true_proof("clear", "A record in clear."),
    _true_proof("coded", "A coded record.", _coded),
    _true_proof("one-leaf", "The whole table is one class.", _set("path", to=[])),
    _true_proof(
        "edge", "The class reaches the threshold.", _set("path", 1, "threshold", to=123456.78125)
    ),
    _true_proof("zeros", "Bounds and a threshold are 0.", _zeros),
    _true_proof(
        "greatest",
        "The greatest binary64.",
        _set("path", 1, "threshold", to=1.7976931348623157e308),
    ),
    _true_proof(
        "tracker",
        "The tracker is given, in upper case.",
        asked=lambda p: ["--root", p["root"].upper(), "--tracker", p["tracker"].upper()],
    ),
    _true_proof(
        "root-spaces",
        "White space around the root.",
        asked=lambda p: ["--root", f" \t\xa0{p['root']}\u3000\r\n"],
    ),
    _true_proof(
        "other-member",
        "Another record of the class.",
        claimed=lambda p: p.update(tracker=p["members"][3]["tracker"]),
    ),
    _true_proof(
        "deepest",
        "As deep as the contract allows.",
        lambda p: p["path"].append({**p["path"][1], "sibling": _name("more")}),
    ),
    _false_proof(
        "other-root", "It is of another root.", asked=lambda p: ["--root", _name("other")]
    ),
    _false_proof(
        "other-tracker", "It is about another tracker.", asked=_of("--tracker", _name("other"))
    ),
    _false_proof(
        "stated-root",
        "Its root is not the one that follows.",
        claimed=_set("root", to=_name("other")),
        asked=lambda p: ["--root", _name("other")],
    ),
    _false_proof(
        "other-submission",
        "It is of another submission.",
        claimed=_set("submission", to=_name("other")),
    ),
    _false_proof(
        "other-contract", "Fewer records were agreed.", claimed=_set("contract", "min_leaf", to=2)
    ),
    _false_proof(
        "other-label",
        "A label was changed.",
        claimed=_set(*QUASI, 1, "categories", 0, to="strasse"),
    ),
    _false_proof("other-count", "The count was changed.", claimed=_set("count", to=5)),
    _false_proof(
        "member-gone",
        "A record is gone, and the count fits.",
        claimed=_both(_set("members", to=lambda m: m[:3]), _set("count", to=3)),
    ),
    _false_proof(
        "member-swapped", "A record has another row.", claimed=_set("members", 0, "row", to=1)
    ),
    _false_proof(
        "member-other",
        "A record has another tracker.",
        claimed=_set("members", 0, "tracker", to=_name("other")),
    ),
    _false_proof(
        "bounds-wider", "A bound was changed.", claimed=_set("bounds", 0, "max", to=123457.0)
    ),
    _false_proof(
        "sibling",
        "The other side of a split was changed.",
        claimed=_set("path", 0, "sibling", to=_name("other")),
    ),
    _false_proof(
        "path-shorter", "The last split is gone.", claimed=_set("path", to=lambda p: p[:-1])
    ),
    _false_proof("path-longer", "A split more.", claimed=_set("path", to=lambda p: [*p, p[1]])),
    _false_proof(
        "path-order",
        "Two splits have changed places.",
        claimed=_set("path", to=lambda p: [p[1], p[0], p[2]]),
    ),
    _false_proof(
        "not-a-member",
        "Its record is not in the class.",
        claimed=_set("tracker", to=_name("other")),
    ),
    _false_proof(
        "too-few",
        "A class smaller than agreed was committed to.",
        _both(_set("members", to=lambda m: m[:2]), _set("count", to=2)),
    ),
    _false_proof("count-untrue", "A count that is not true was committed to.", _set("count", to=5)),
    _false_proof("rows-descend", "Rows descend.", _set("members", to=lambda m: m[::-1])),
    _false_proof("row-twice", "A row occurs twice.", _set("members", 1, "row", to=2)),
    _false_proof(
        "tracker-twice",
        "A tracker occurs twice.",
        _set("members", 0, "tracker", to=_name("tracker 70000")),
    ),
    _false_proof(
        "bounds-upside-down",
        "A least value is above the greatest.",
        _set("bounds", 0, "min", to=123457.0),
    ),
    _false_proof(
        "wrong-side",
        "The class lies on the other side of a split.",
        _set("path", 0, "side", to="left"),
    ),
    _false_proof(
        "beyond-threshold",
        "The class reaches beyond a threshold.",
        _set("path", 1, "threshold", to=123456.5),
    ),
    _false_proof(
        "right-edge",
        "The least value is the threshold, on the right.",
        _set("path", 0, "threshold", to=-2.0),
    ),
    _false_proof("too-deep", "It lies deeper than agreed.", _set("contract", "max_depth", to=2)),
    _false_proof(
        "unknown-column",
        "A split is by a column that there is not.",
        _set("path", 1, "column", to=3),
    ),
    _false_proof(
        "bounds-missing", "The bounds of a column are missing.", _set("bounds", to=lambda b: b[:2])
    ),
    _false_proof(
        "bounds-more",
        "There are bounds of one column more.",
        _set("bounds", to=lambda b: [*b, b[0]]),
    ),
    _false_proof(
        "category-beyond",
        "A category beyond the last.",
        _both(_set("bounds", 1, "max", to=3.0), _set("path", 2, "threshold", to=3.0)),
    ),
    _false_proof("category-fraction", "Half a category.", _set("path", 2, "threshold", to=1.5)),
    _false_proof(
        "category-negative", "A category before the first.", _set("bounds", 1, "min", to=-1.0)
    ),
    _false_proof(
        "rank-beyond",
        "A place that is not below the size.",
        _both(_coded, _set("bounds", 0, "max", to=9.0)),
    ),
    _false_proof("date-fraction", "Half a day.", _set("bounds", 2, "max", to=0.5)),
    _false_proof("date-beyond", "A date beyond 2^53.", _set("bounds", 2, "max", to=2.0**53 + 2)),
    _false_proof(
        "paper",
        "The paper's commitment binds no record.",
        _both(_set("contract", "commitment", to="paper"), _set(*QUASI, 1, "name", to="b")),
    ),
    _false_proof("contract-min-leaf", "min_leaf is below k.", _set("contract", "k", to=4)),
    _false_proof(
        "contract-name", "A column has a reserved name.", _set(*QUASI, 0, "name", to="row")
    ),
    _false_proof(
        "contract-classes",
        "A target of three classes.",
        _set(*QUASI, 3, "categories", to=["a", "b", "c"]),
    ),
    _false_proof(
        "contract-label-twice", "A category twice.", _set(*QUASI, 1, "categories", to=["a", "a"])
    ),
    _false_proof(
        "contract-weight",
        "A weight whose scores are not exact.",
        _both(_coded, _set(*QUASI, 0, "weight", to=2**49 + 1)),
    ),
    _false_proof(
        "contract-no-target",
        "variance-reduction without a target.",
        _set(*QUASI, to=lambda columns: columns[:3]),
    ),
    _false_proof("no-root", "No root was given.", asked=lambda p: [], kind=CaseKind.UNUSABLE),
    _false_proof(
        "root-form",
        "The root is too short.",
        asked=lambda p: ["--root", p["root"][:-1]],
        kind=CaseKind.UNUSABLE,
    ),
    _false_proof(
        "root-mark",
        "A byte order mark before the root.",
        asked=lambda p: ["--root", f"\ufeff{p['root']}"],
        kind=CaseKind.UNUSABLE,
    ),
    _false_proof(
        "root-pairs",
        "Spaces between the digits of the root.",
        asked=lambda p: ["--root", " ".join(wrap(p["root"], 2))],
        kind=CaseKind.UNUSABLE,
    ),
    _false_proof(
        "tracker-form",
        "The tracker is not one.",
        asked=_of("--tracker", "x" * 64),
        kind=CaseKind.UNUSABLE,
    ),
]

SPOILT: dict[str, tuple[str, Bytes]] = {
    "key-twice": (
        "A field occurs twice.",
        lambda d: d.replace(b'"count":4', b'"count":4,"count":4'),
    ),
    "key-escaped": (
        "A field occurs twice, once with an escape.",
        lambda d: d.replace(b'"count":4', b'"count":4,"\\u0063ount":4'),
    ),
    "fraction": ("An integer is written 4.0.", lambda d: d.replace(b'"count":4', b'"count":4.0')),
    "exponent": ("An integer is written 4e0.", lambda d: d.replace(b'"count":4', b'"count":4e0')),
    "bound-fraction": ("A bound is written 1.0.", lambda d: d.replace(b'"max":1,', b'"max":1.0,')),
    "bound-exponent": ("A threshold is written 1E21.", lambda d: d.replace(b"1e+21", b"1E21")),
    "bound-digits": (
        "A threshold is written with all its digits.",
        lambda d: d.replace(b"1e+21", b"1000000000000000000000"),
    ),
    "bound-close": (
        "A bound has digits that change nothing.",
        lambda d: d.replace(b"123456.78125", b"123456.781250000000001"),
    ),
    "minus-zero": ("A bound is written -0.", lambda d: d.replace(b'"min":0}', b'"min":-0}')),
    "infinite": ("A bound is beyond binary64.", lambda d: d.replace(b"123456.78125", b"1e400")),
    "nan": ("A bound is NaN.", lambda d: d.replace(b"123456.78125", b"NaN")),
    "true": ("A number is true.", lambda d: d.replace(b'"column":1', b'"column":true')),
    "text": ("A number is text.", lambda d: d.replace(b'"count":4', b'"count":"4"')),
    "space": ("A space more.", lambda d: d.replace(b'"count":4', b'"count": 4')),
    "line": ("A line feed at the end.", lambda d: d + b"\n"),
    "order": (
        "Its fields are in another order.",
        lambda d: (
            json.dumps(json.loads(d), separators=(",", ":"), ensure_ascii=False)
            .replace('"format":"verix/proof/1",', "")
            .replace("{", '{"format":"verix/proof/1",', 1)
            .encode()
        ),
    ),
    "mark": ("A byte order mark.", lambda d: b"\xef\xbb\xbf" + d),
    "escape": ("A letter is escaped.", lambda d: d.replace(b"amount", b"\\u0061mount")),
    "slash": ("A slash is escaped.", lambda d: d.replace(b"verix/proof", b"verix\\/proof")),
    "capital-escape": (
        "An escape has a capital digit.",
        lambda d: d.replace(b"\\u0007", b"\\U0007"),
    ),
    "raw-control": (
        "A control character stands as it is.",
        lambda d: d.replace(b"\\u0007", b"\x07"),
    ),
    "normalized": (
        "A name is in another normal form.",
        lambda d: d.replace("naïve".encode(), "nai\u0308ve".encode()),
    ),
    "surrogate": ("Half a surrogate pair.", lambda d: d.replace("naïve".encode(), b"\\ud800")),
    "utf-16": ("It is in UTF-16.", lambda d: d.decode().encode("utf-16")),
    "latin": ("It is in Latin-1.", lambda d: d.replace("ï".encode(), b"\xef")),
    "overlong": (
        "A letter has more bytes than it needs.",
        lambda d: d.replace(b"amount", b"\xc1\xa1mount"),
    ),
    "capitals": (
        "A digest has capital letters.",
        lambda d: d.replace(_name("submission").encode(), _name("submission").upper().encode()),
    ),
    "field-more": ("An unknown field.", lambda d: d.replace(b'"count":4', b'"count":4,"counts":4')),
    "field-less": ("A field is missing.", lambda d: d.replace(b'"count":4,', b"")),
    "format": ("Another version.", lambda d: d.replace(b"verix/proof/1", b"verix/proof/2")),
    "cut": ("The end is missing.", lambda d: d[:-1]),
    "twice": ("It stands twice in the file.", lambda d: d + d),
    "list": ("A list holds it.", lambda d: b"[" + d + b"]"),
    "deep": ("Five thousand brackets.", lambda d: b"[" * 5000),
    "empty": ("An empty file.", lambda d: b""),
}
"""Bytes that are not the canonical form of a true proof."""


def _proof_bytes() -> list[CheckerCase]:
    return [_false_proof(f"bytes-{n}", title, spoil=s) for n, (title, s) in SPOILT.items()]


# Receipts, signed verdicts and keys (spec §8.5)


def _key(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(sha256(name.encode()))


def _raw(name: str) -> bytes:
    return _key(name).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _pem(raw: bytes) -> bytes:
    return b"-----BEGIN PUBLIC KEY-----\n%b\n-----END PUBLIC KEY-----\n" % b64encode(DER + raw)


def _signed_bytes(payload: bytes, kind: str = TYPE) -> bytes:
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)


def _signature(payload: bytes, name: str, kind: str = TYPE) -> Json:
    made = _key(name).sign(_signed_bytes(payload, kind))
    return {"keyid": sha256(DER, _raw(name)).hex(), "sig": b64encode(made).decode()}


def _envelope(payload: bytes, *names: str) -> Json:
    signatures = [_signature(payload, name) for name in names]
    return {"payload": b64encode(payload).decode(), "payloadType": TYPE, "signatures": signatures}


FILES = {name: name.encode() for name in ("leaves.parquet", "nodes.parquet", "records.parquet")}
AGREED = {name: _name(name) for name in ("contract", "submission")}
FILES["delivery.json"] = json.dumps({"root": _name("root"), **AGREED}).encode()
LARGE = {"delivery.json": FILES["delivery.json"] + b" " * 2**16 + b"more"}
"""Beyond the limit of a delivery.json, so that a reader who stops there sees no harm."""


def _statement(kind: str, predicate: Json, **more: str) -> Json:
    digests = {name: sha256(data).hex() for name, data in FILES.items()}
    digests |= {"root": _name("root"), **more}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": n, "digest": {"sha256": d}} for n, d in sorted(digests.items())],
        "predicateType": f"urn:verix:{kind}:1",
        "predicate": {**AGREED, "version": "1.2.3", **predicate},
    }


def _receipt() -> Json:
    counts = {"rows": 1000, "leaves": 60, "nodes": 119}
    times = {"began": "2026-11-16T05:00:00+00:00", "finished": "2026-11-16T05:00:07.25Z"}
    return _statement("receipt", {"engine": "verix-ürtlich", **counts, **times})


def _verdict() -> Json:
    findings = [("commitment", "pass", True), ("utility", "skipped", False)]
    said = [{"layer": a, "status": b, "decides": c} for a, b, c in findings]
    predicate = {"outcome": "VERIFIED", "profile": "full", "findings": said}
    return _statement(
        "verdict",
        {**predicate, "time": "2026-11-16T06:00:00+00:00"},
        **{"verdict.json": _name("verdict.json")},
    )


def _pinned(**more: str) -> bytes:
    pinned = {"keyid": sha256(DER, _raw("provider")).hex(), "name": "", **more}
    return rfc8785.dumps(
        {"format": "verix/keys/1", "keys": [{"public": _pem(_raw("provider")).decode(), **pinned}]}
    )


def _shown_receipt(
    said: Change,
    spoil: Bytes,
    change: Change,
    verdict: Change | None,
    keys: Mapping[str, bytes] | None,
    words: tuple[str, ...],
    delivered: Mapping[str, bytes],
) -> tuple[Json, list[str]]:
    statement = _receipt()
    said(statement)
    envelope = _envelope(spoil(rfc8785.dumps(statement)), "provider")
    change(envelope)
    files = {"receipt": json.dumps(envelope).encode(), **(keys or {"key": _pem(_raw("provider"))})}
    asked = ["receipt", "check", "{receipt}"]
    for name in keys or {"key": b""}:
        asked += ["--key", f"{{{name}}}"]
    if verdict is not None:
        statement = _verdict()
        verdict(statement)
        files["verdict"] = json.dumps(_envelope(rfc8785.dumps(statement), "owner")).encode()
        files["owner"] = _pem(_raw("owner"))
        asked += ["--verdict", "{verdict}", "--owner-key", "{owner}"]
    shown = {name: data for name, data in delivered.items() if f"{{{name}}}" in "".join(words)}
    return {**files, **shown}, [*asked, *words]


def _receipt_case(
    kind: CaseKind,
    name: str,
    title: str,
    said: Change = _same,
    *,
    spoil: Bytes = _same,
    change: Change = _same,
    verdict: Change | None = None,
    keys: Mapping[str, bytes] | None = None,
    words: tuple[str, ...] = (),
    delivered: Mapping[str, bytes] = FILES,
) -> CheckerCase:
    make = partial(_shown_receipt, said, spoil, change, verdict, keys, words, delivered)
    return _case(kind, f"signed-{name}", "8.5", title, make)


def _resigned(*names: str, kind: str = TYPE) -> Change:
    """Sign what the receipt says by other keys, or over another type."""

    def change(envelope: Json) -> None:
        payload = rfc8785.dumps(_receipt())
        envelope["signatures"] = [_signature(payload, name, kind) for name in names]

    return change


def _becomes(made: Callable[[], Json]) -> Change:
    """Another statement in place of this one."""

    def change(statement: Json) -> None:
        statement.clear()
        statement.update(made())

    return change


def _recoded(envelope: Json) -> None:
    envelope["payload"] = urlsafe_b64encode(rfc8785.dumps(_receipt())).decode()


def _raised(envelope: Json) -> None:
    """S + L in place of S, which fits the same equation."""
    (signature,) = envelope["signatures"]
    made = _key("provider").sign(_signed_bytes(rfc8785.dumps(_receipt())))
    s = int.from_bytes(made[32:], "little") + ORDER
    signature["sig"] = b64encode(made[:32] + s.to_bytes(32, "little")).decode()


HOLDS, FORGED, UNUSABLE = CaseKind.HOLDS, CaseKind.FORGED, CaseKind.UNUSABLE
PREDICATE = "predicate"
RECEIPTS = [
    _receipt_case(HOLDS, "receipt", "A receipt."),
    _receipt_case(
        HOLDS,
        "pretty",
        "A statement that is not canonical.",
        spoil=lambda d: json.dumps(json.loads(d), indent=2).encode(),
    ),
    _receipt_case(HOLDS, "url-safe", "The other alphabet of Base64.", change=_recoded),
    _receipt_case(
        HOLDS,
        "two-signatures",
        "A key that is not known has signed it too.",
        change=_resigned("other", "provider"),
    ),
    _receipt_case(
        HOLDS,
        "no-keyid",
        "A signature without a key's name stands beside.",
        change=lambda e: e["signatures"].append({"sig": "AAAA"}),
    ),
    _receipt_case(
        HOLDS,
        "pinned",
        "The key is pinned in a file, with times.",
        keys={
            "key": _pinned(not_before="2020-01-01T00:00:00+00:00", not_after="9000-01-01T00:00:00Z")
        },
    ),
    _receipt_case(HOLDS, "verdict", "A receipt and a verdict.", verdict=_same),
    _receipt_case(HOLDS, "root", "The root is given.", words=("--root", _name("root"))),
    _receipt_case(
        HOLDS,
        "files",
        "Two of its files.",
        words=(
            "--file",
            "delivery.json={delivery.json}",
            "--file",
            "records.parquet={records.parquet}",
        ),
    ),
    _receipt_case(
        HOLDS,
        "violation",
        "A verdict of VIOLATION is a true statement, too.",
        verdict=_both(
            _set(PREDICATE, "outcome", to="VIOLATION"),
            _set(PREDICATE, "findings", 0, "status", to="fail"),
        ),
    ),
    _receipt_case(
        FORGED,
        "changed",
        "The statement was changed after it was signed.",
        change=_set(
            "payload", to=lambda p: b64encode(rfc8785.dumps({**_receipt(), "_type": ""})).decode()
        ),
    ),
    _receipt_case(FORGED, "other-key", "Another key has signed it.", change=_resigned("other")),
    _receipt_case(
        FORGED,
        "other-name",
        "Another key has signed it under this key's name.",
        change=_set(
            "signatures",
            to=lambda s: [{**s[0], "sig": _signature(rfc8785.dumps(_receipt()), "other")["sig"]}],
        ),
    ),
    _receipt_case(
        FORGED,
        "other-type",
        "It was signed as something of another type.",
        change=_resigned("provider", kind="application/json"),
    ),
    _receipt_case(
        FORGED,
        "type",
        "The envelope has another type.",
        change=_set("payloadType", to="application/json"),
    ),
    _receipt_case(
        FORGED,
        "name-twice",
        "Two signatures name one key.",
        change=_resigned("provider", "provider"),
    ),
    _receipt_case(FORGED, "raised", "S is L or more.", change=_raised),
    _receipt_case(
        FORGED,
        "cut-signature",
        "The signature has 63 bytes.",
        change=_set("signatures", 0, "sig", to=lambda s: s[:84]),
    ),
    _receipt_case(
        FORGED,
        "padding",
        "Base64 without padding.",
        change=_set("signatures", 0, "sig", to=lambda s: s.rstrip("=")),
    ),
    _receipt_case(
        FORGED,
        "padding-more",
        "Base64 with more padding than it needs.",
        change=_set("signatures", to=lambda s: [*s, {"keyid": "a", "sig": "AAAA===="}]),
    ),
    _receipt_case(
        FORGED, "no-signature", "Nobody has signed it.", change=_set("signatures", to=[])
    ),
    _receipt_case(
        FORGED,
        "many-signatures",
        "Seventeen signatures.",
        change=_resigned("provider", *(f"{i}" for i in range(16))),
    ),
    _receipt_case(
        FORGED, "envelope-field", "The envelope has a field more.", change=_set("more", to=1)
    ),
    _receipt_case(
        FORGED,
        "as-verdict",
        "The provider signed a verdict in place of a receipt.",
        _becomes(_verdict),
    ),
    _receipt_case(
        FORGED,
        "verdict-as-receipt",
        "The owner signed a receipt in place of a verdict.",
        verdict=_becomes(_receipt),
    ),
    _receipt_case(
        FORGED, "subject-less", "A file is missing.", _set("subject", to=lambda s: s[1:])
    ),
    _receipt_case(
        FORGED,
        "subject-more",
        "A file more.",
        _set("subject", to=lambda s: [*s, {**s[0], "name": "more"}]),
    ),
    _receipt_case(
        FORGED, "subject-twice", "A file twice.", _set("subject", to=lambda s: [*s, s[0]])
    ),
    _receipt_case(
        FORGED,
        "subject-other",
        "Another digest than SHA-256.",
        _set("subject", 0, "digest", to={"sha512": _name("x")}),
    ),
    _receipt_case(FORGED, "field-more", "An unknown field.", _set(PREDICATE, "more", to=1)),
    _receipt_case(
        FORGED,
        "field-twice",
        "A field occurs twice in what was signed.",
        spoil=lambda d: d.replace(b'"rows":1000', b'"rows":1,"rows":1000'),
    ),
    _receipt_case(
        FORGED, "fraction", "A count is 1000.0.", spoil=lambda d: d.replace(b"1000", b"1000.0")
    ),
    _receipt_case(
        FORGED, "exponent", "A count is 1e3.", spoil=lambda d: d.replace(b"1000", b"1e3")
    ),
    _receipt_case(FORGED, "negative", "A count below 0.", _set(PREDICATE, "rows", to=-1)),
    _receipt_case(FORGED, "flag", "A count is true.", _set(PREDICATE, "rows", to=True)),
    _receipt_case(FORGED, "large", "A count of 2^32.", _set(PREDICATE, "rows", to=2**32)),
    _receipt_case(
        FORGED, "mark", "A byte order mark in what was signed.", spoil=lambda d: b"\xef\xbb\xbf" + d
    ),
    _receipt_case(
        FORGED,
        "local-time",
        "A time that is not in UTC.",
        _set(PREDICATE, "began", to="2026-11-16T05:00:00+01:00"),
    ),
    _receipt_case(
        FORGED,
        "no-zone",
        "A time without a zone.",
        _set(PREDICATE, "began", to="2026-11-16T05:00:00"),
    ),
    _receipt_case(
        FORGED,
        "no-day",
        "A day that there is not.",
        _set(PREDICATE, "began", to="2026-02-29T05:00:00Z"),
    ),
    _receipt_case(
        FORGED,
        "short-time",
        "A time in the short form of ISO 8601.",
        _set(PREDICATE, "began", to="20260131T050000Z"),
    ),
    _receipt_case(FORGED, "long-word", "65 characters.", _set(PREDICATE, "engine", to="e" * 65)),
    _receipt_case(
        FORGED, "turned", "A mark that turns text.", _set(PREDICATE, "engine", to="a\u202eb")
    ),
    _receipt_case(
        FORGED,
        "surrogate",
        "Half a surrogate pair.",
        spoil=lambda d: d.replace("ü".encode(), b"\\ud800"),
    ),
    _receipt_case(
        FORGED, "other-root", "It is about another root.", words=("--root", _name("other"))
    ),
    _receipt_case(
        FORGED,
        "other-file",
        "A file is another.",
        words=("--file", "nodes.parquet={records.parquet}"),
    ),
    _receipt_case(
        FORGED,
        "unknown-file",
        "Nothing names the file.",
        words=("--file", "more.parquet={records.parquet}"),
    ),
    _receipt_case(
        FORGED,
        "contradiction",
        "delivery.json and the receipt contradict each other.",
        _set("subject", 4, "digest", "sha256", to=_name("other")),
        words=("--file", "delivery.json={delivery.json}"),
    ),
    _receipt_case(
        FORGED,
        "header-large",
        "delivery.json agrees up to the limit, and is larger.",
        _set("subject", 0, "digest", "sha256", to=sha256(LARGE["delivery.json"]).hex()),
        words=("--file", "delivery.json={delivery.json}"),
        delivered=LARGE,
    ),
    _receipt_case(
        FORGED,
        "verdict-root",
        "The verdict is on another root.",
        verdict=_set("subject", 4, "digest", "sha256", to=_name("other")),
    ),
    _receipt_case(
        FORGED,
        "verdict-file",
        "The verdict is on other files.",
        verdict=_set("subject", 0, "digest", "sha256", to=_name("other")),
    ),
    _receipt_case(
        FORGED,
        "verdict-contract",
        "The verdict is for another contract.",
        verdict=_set(PREDICATE, "contract", to=_name("other")),
    ),
    _receipt_case(
        FORGED,
        "outcome",
        "The outcome does not follow from the findings.",
        verdict=_set(PREDICATE, "findings", 0, "status", to="fail"),
    ),
    _receipt_case(
        FORGED,
        "nothing-decides",
        "VERIFIED, and nothing decides.",
        verdict=_set(PREDICATE, "findings", 0, "decides", to=False),
    ),
    _receipt_case(
        FORGED,
        "revoked",
        "The key was revoked after the time in the receipt.",
        keys={"key": _pinned(revoked="2026-12-01T00:00:00+00:00", reason="stolen")},
    ),
    _receipt_case(
        FORGED,
        "revoked-once",
        "The key is pinned in one file and revoked in another.",
        keys={"key": _pem(_raw("provider")), "list": _pinned(revoked="2020-01-01T00:00:00Z")},
    ),
    _receipt_case(
        FORGED,
        "not-yet",
        "The key does not count yet.",
        keys={"key": _pinned(not_before="9000-01-01T00:00:00Z")},
    ),
    _receipt_case(
        FORGED,
        "expired",
        "The key does not count any more.",
        keys={"key": _pinned(not_after="2020-01-01T00:00:00Z")},
    ),
    _receipt_case(
        UNUSABLE,
        "keyid",
        "A pinned key has the name of another.",
        keys={"key": _pinned(keyid=_name("other"))},
    ),
    _receipt_case(
        UNUSABLE,
        "key-time",
        "A pinned key was revoked at no time.",
        keys={"key": _pinned(revoked="yesterday")},
    ),
    _receipt_case(
        UNUSABLE,
        "no-key",
        "A file without keys.",
        keys={"key": b'{"format":"verix/keys/1","keys":[]}'},
    ),
    _receipt_case(UNUSABLE, "no-pem", "A file that is not a key.", keys={"key": b"key"}),
    _receipt_case(
        HOLDS,
        "key-spaces",
        "White space in the Base64 of a key, and text after its block.",
        keys={"key": b" \n" + _pem(_raw("provider")).replace(b"M", b"\r\n\n\tM") + b"more"},
    ),
    _receipt_case(
        UNUSABLE,
        "key-second",
        "The key is the second block of its file.",
        keys={"key": _pem(b"").replace(b"PUBLIC KEY", b"CERTIFICATE") + _pem(_raw("provider"))},
    ),
    _receipt_case(
        UNUSABLE,
        "key-headers",
        "A header before the Base64 of a key.",
        keys={"key": _pem(_raw("provider")).replace(b"-----\n", b"-----\nOf: x\n\n", 1)},
    ),
    _receipt_case(
        UNUSABLE,
        "key-bits",
        "The Base64 of a key has bits that belong to no byte.",
        keys={"key": _pem(_raw("provider")).replace(b"c=", b"d=")},
    ),
    _receipt_case(
        UNUSABLE,
        "root-pairs",
        "Spaces between the digits of the root.",
        words=("--root", " ".join(wrap(_name("root"), 2))),
    ),
    _receipt_case(
        UNUSABLE,
        "private",
        "A private key in place of the public one.",
        keys={"key": b"-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n"},
    ),
]


def _weak_keys() -> list[CheckerCase]:
    """For each of these points anybody can write a signature that fits almost any statement."""

    def forged(raw: bytes) -> Change:
        keyid, sig = sha256(DER, raw).hex(), b64encode(b"\1" + bytes(63)).decode()
        return _set("signatures", to=[{"keyid": keyid, "sig": sig}])

    return [
        _receipt_case(
            UNUSABLE,
            f"weak-{name}",
            "A key for which anybody can sign, or with two names.",
            change=forged(raw),
            keys={"key": _pem(raw)},
        )
        for name, raw in SMALL.items()
    ]


# The log of a series (spec §15)


def _entries(n: int, name: str = "release") -> list[Json]:
    return [
        {
            "number": i,
            "time": "2026-01-31T12:00:00+00:00",
            **{x: _name(f"{name} {i} {x}") for x in ("submission", "root", "cells")},
            "contract": _name("contract"),
            "file": sha256(b"%b %d" % (name.encode(), i)).hex(),
        }
        for i in range(1, n + 1)
    ]


def _tree_hash(leaves: list[bytes]) -> bytes:
    """RFC 9162, §2.1.1, as it is written there."""
    if len(leaves) <= 1:
        return sha256(*(b"\0" + each for each in leaves))
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1", _tree_hash(leaves[:k]), _tree_hash(leaves[k:]))


def _head(entries: list[Json]) -> str:
    return _tree_hash([rfc8785.dumps(each) for each in entries]).hex()


def _shown_log(change: Change, spoil: Change, signer: str | None, words: tuple[str, ...]) -> Any:
    entries = _entries(7)
    change(entries)
    log: Json = {"format": "verix/series/1", "entries": entries, "size": len(entries)}
    log["head"] = _head(entries)
    if signer is not None:
        subject = [{"name": "head", "digest": {"sha256": log["head"]}}]
        said: Json = {"_type": "https://in-toto.io/Statement/v1", "subject": subject}
        said |= {"predicateType": "urn:verix:series:1", "predicate": {"size": log["size"]}}
        log["signature"] = _envelope(rfc8785.dumps(said), signer)
    spoil(log)
    files = {"log": json.dumps(log, separators=(",", ":")).encode(), "key": _pem(_raw("owner"))}
    files |= {"file": b"release 3", "other": b"release"}
    shown = {n: data for n, data in files.items() if n == "log" or f"{{{n}}}" in words}
    return shown, ["series", "check", "{log}", *words]


def _log_case(
    kind: CaseKind,
    name: str,
    title: str,
    change: Change = _same,
    spoil: Change = _same,
    signer: str | None = None,
    words: tuple[str, ...] = (),
) -> CheckerCase:
    make = partial(_shown_log, change, spoil, signer, words)
    return _case(kind, f"series-{name}", "15", title, make)


def _numbered(entries: list[Json], others: list[Json]) -> None:
    """Other entries in place of these, with numbers that fit."""
    entries[:] = [{**each, "number": i} for i, each in enumerate(others, 1)]


def _since(n: int) -> tuple[str, ...]:
    return ("--since", f"{n}:{_head(_entries(n))}")


KEY, FILE = ("--key", "{key}"), ("--file", "{file}")
SERIES = [
    _log_case(HOLDS, "whole", "A log of seven releases."),
    _log_case(HOLDS, "empty", "A log without releases.", list.clear),
    *(
        _log_case(HOLDS, f"since-{n}", f"It continues the head of {n} releases.", words=_since(n))
        for n in (0, 1, 3, 4, 6, 7)
    ),
    _log_case(HOLDS, "file", "The third file.", words=FILE),
    _log_case(HOLDS, "signed", "Its head is signed.", signer="owner", words=(*KEY, *_since(5))),
    _log_case(
        FORGED,
        "replaced",
        "A release was replaced.",
        _set(2, "file", to=_name("x")),
        words=_since(5),
    ),
    _log_case(
        FORGED,
        "reordered",
        "Two releases have changed places.",
        lambda e: _numbered(e, [e[0], e[6], *e[1:6]]),
        words=_since(5),
    ),
    _log_case(
        FORGED,
        "removed",
        "A release was removed.",
        lambda e: _numbered(e, [e[0], *e[2:]]),
        words=_since(5),
    ),
    _log_case(
        FORGED,
        "cut",
        "The last releases were cut off.",
        lambda e: e.__delitem__(slice(3, None)),
        words=_since(5),
    ),
    _log_case(
        FORGED,
        "forked",
        "The log of another series.",
        lambda e: e.__setitem__(slice(None), _entries(7, "fork")),
        words=_since(5),
    ),
    _log_case(FORGED, "head", "The head is another.", spoil=_set("head", to=_name("x"))),
    _log_case(
        FORGED,
        "entry",
        "An entry was changed, and the head was not.",
        spoil=_set("entries", 0, "root", to=_name("x")),
    ),
    _log_case(FORGED, "size", "The size is another.", spoil=_set("size", to=6)),
    _log_case(FORGED, "size-fraction", "The size is 7.0.", spoil=_set("size", to=7.0)),
    _log_case(FORGED, "number", "A number is left out.", _set(6, "number", to=8)),
    _log_case(FORGED, "field-more", "An entry has a field more.", _set(0, "more", to="x")),
    _log_case(
        FORGED,
        "time",
        "A time that is not in UTC.",
        _set(0, "time", to="2026-01-31T12:00:00+02:00"),
    ),
    _log_case(FORGED, "capitals", "A digest has capital letters.", _set(0, "file", to=str.upper)),
    _log_case(FORGED, "format", "Another version.", spoil=_set("format", to="verix/series/2")),
    _log_case(
        FORGED, "not-a-release", "A file that is not a release.", words=("--file", "{other}")
    ),
    _log_case(FORGED, "unsigned", "Its head is not signed.", words=KEY),
    _log_case(
        FORGED, "other-signer", "Another key has signed its head.", signer="other", words=KEY
    ),
    _log_case(
        FORGED,
        "old-signature",
        "The signature is about an earlier head.",
        signer="owner",
        words=KEY,
        spoil=lambda log: (log["entries"].pop(), log.update(size=6, head=_head(log["entries"]))),
    ),
    _log_case(
        FORGED, "size-false", "The size is false, not 0.", list.clear, _set("size", to=False)
    ),
    # The form of a signature counts, whether or not it is asked who signed.
    _log_case(
        FORGED, "signature-null", "No signature, in words.", spoil=_set("signature", to=None)
    ),
    _log_case(FORGED, "signature-empty", "Not an envelope.", spoil=_set("signature", to={})),
    _log_case(
        FORGED,
        "signature-number",
        "An envelope with a number that has no canonical form.",
        spoil=_set("signature", "more", to=2**53 + 1),
        signer="owner",
    ),
    _log_case(
        FORGED,
        "signature-surrogate",
        "A keyid that is not Unicode.",
        spoil=_set("signature", "signatures", 0, "keyid", to="\ud800"),
        signer="owner",
    ),
    _log_case(
        FORGED,
        "signature-large",
        "An envelope above the limit.",
        spoil=_set("signature", "payload", to="A" * 2**16),
        signer="owner",
    ),
    *(
        _log_case(UNUSABLE, f"since-{name}", "The older head is not one.", words=("--since", head))
        for name, head in (
            ("words", "yesterday"),
            ("zero", f"07:{_head(_entries(7))}"),
            ("capitals", f"7:{_head(_entries(7)).upper()}"),
        )
    ),
    _log_case(
        UNUSABLE,
        "since-first",
        "The older head is not one, and the log is forged.",
        spoil=_set("size", to=6),
        words=("--since", "3"),
    ),
]
