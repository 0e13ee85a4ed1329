"""Reports to test, and what a reader without a browser sees of them."""

import base64
import re
from dataclasses import dataclass, field, replace
from functools import cache
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa

from client.test_secrets import row_lists, secrets_of
from tools import cases
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release import release
from verix_anon.client.report import render
from verix_anon.client.verdict import Profile, Verdict
from verix_anon.client.verify import verify
from verix_anon.protocol.messages import Delivery, Submission

FIRST_VALUE, STEP = 7_310_452.125, 1_009.0625
NAMES = ("honest", "lazy", "dumb", "approximate", "misplaced", "forged")
ALL = [(name, profile) for name in NAMES for profile in Profile]
SCRIPT = "<script>alert(1)</script>"
VOID = {"meta", "link", "br", "hr", "img", "input", "path", "use"}


def canary_table(n_rows: int = 300) -> pa.Table:
    """Every value of it is like no other number; every text has the word `canary` in it."""
    rng = np.random.default_rng(4)
    number = FIRST_VALUE + STEP * rng.permutation(n_rows)
    other = -5_518_203.5 - 977.25 * rng.permutation(n_rows)
    labels = np.array([f"canarylabel{chr(97 + i)}q" for i in range(8)])
    town = rng.integers(0, 8, n_rows)
    chance = 0.1 + 0.5 * (number > np.median(number)) + 0.3 * (town > 4)
    return pa.table(
        {
            "amount": number,
            "debt": other,
            "town": labels[town],
            "day": (rng.permutation(n_rows) * 11 - 9_000).astype("M8[D]"),
            "diagnosis": np.array([f"canarysecret{i}q" for i in range(n_rows)]),
            "person": np.array([f"canaryperson{i}q" for i in range(n_rows)]),
            "outcome": np.where(rng.random(n_rows) < chance, "canaryyes", "canaryno"),
        }
    )


@cache
def canaries() -> Prepared:
    # In clear, so that there are values which a report could show.
    options = PrepareOptions.paper(
        unsafe_seed=3, calibrate=2, threads=1, commitment="binding", traps="adaptive"
    )
    return prepare(
        canary_table(),
        target="outcome",
        quasi=["amount", "debt", "town", "day"],
        sensitive=["diagnosis"],
        identifier=["person"],
        k=3,
        options=options,
    )


def misplaced(sent: Submission) -> Delivery:
    honest = cases.honest(sent)
    leaf = np.roll(honest.records.leaf, 1)
    return cases.resealed(sent, honest, records=replace(honest.records, leaf=leaf))


def delivery_of(name: str, sent: Submission) -> Delivery:
    if name == "honest":
        return cases.honest(sent)
    if name == "misplaced":
        return misplaced(sent)
    if name == "forged":
        return cases.forged(cases.honest(sent))
    return ADVERSARIES[name](0).anonymize(sent)


@cache
def judged(name: str, profile: Profile = Profile.FULL) -> Verdict:
    prepared = canaries()
    return verify(
        delivery_of(name, prepared.submission),
        prepared.manifest,
        submission=None if profile is Profile.THIN else prepared.submission,
        profile=profile,
    )


@cache
def released() -> str:
    """The privacy sheet of the honest delivery, as the command writes it."""
    prepared, verdict = canaries(), judged("honest")
    made = release(
        cases.honest(prepared.submission), prepared.manifest, verdict, table=canary_table()
    )
    return made.sheet.to_json()


@cache
def report(name: str, profile: Profile = Profile.FULL, *, with_sheet: bool = False) -> str:
    return render(judged(name, profile), Sheet.from_json(released()) if with_sheet else None)


@cache
def all_values() -> frozenset[str]:
    """What every value of the table begins with or has in it, however it is written."""
    table, found = canary_table(), {"canary"}
    found |= {str(day) for day in table["day"].to_pylist()}
    for value in (*table["amount"].to_pylist(), *table["debt"].to_pylist()):
        whole = abs(int(value))
        found |= {f"{whole}", f"{whole:,}", f"{whole:_}", f"{abs(value):.6g}", value.hex()[:14]}
    return frozenset(found)


def secret_forms(manifest: Manifest, sent: Submission) -> list[bytes]:
    """Salt, keys, trackers and roles, raw, in hexadecimal and in base64."""
    found = secrets_of(manifest) + row_lists(manifest)
    for tracker in sent.records.tracker:
        # Nobody else's bytes begin like it, so a part of it is a tracker too.
        raw = tracker.tobytes()[:9]
        found += [raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw)]
    return [*found, base64.b64encode(manifest.salt)[:12]]


def text_of(page: str) -> str:
    """What stands in a page between its tags."""
    return unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S)))


@dataclass
class Outline(HTMLParser):
    """The elements of a page, with their attributes, and whether they nest."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    @classmethod
    def of(cls, page: str) -> "Outline":
        outline = cls()
        outline.feed(page)
        outline.close()
        outline.unbalanced += outline._open
        return outline

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def values(self, attribute: str) -> list[str]:
        return [found[attribute] for _, found in self.elements if attribute in found]


def altered(verdict: Verdict, layer: str, **changes: object) -> Verdict:
    """The verdict with other evidence in one layer; None takes it away."""
    findings = []
    for finding in verdict.findings:
        if finding.layer == layer:
            evidence = {k: v for k, v in {**finding.evidence, **changes}.items() if v is not None}
            finding = replace(finding, evidence=evidence)
        findings.append(finding)
    return replace(verdict, findings=tuple(findings))
