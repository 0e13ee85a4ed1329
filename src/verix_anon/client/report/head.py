"""The words at the top of a report: its answers, what a release leaves open, what was sent.

The answers are three: was the work done as agreed, how sure is that, and what to tell others.
Evidence is read strictly, because a verdict file may hold anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from verix_anon.client.audit_subject import Account, SentColumn, SentForm
from verix_anon.client.evidence import ShapShift, short_numbers
from verix_anon.client.manifest import Parties
from verix_anon.client.privacy_sheet import Sheet, share
from verix_anon.client.table.task import TableRole
from verix_anon.client.verdict import RECEIPT, Finding, Outcome, Profile, Status, Verdict
from verix_anon.errors import TableError
from verix_anon.fields import COUNTS, Fields, printable

Read = TypeVar("Read")

LINE = 100
"""Characters that are shown of a name or another short text."""


@dataclass(frozen=True, slots=True)
class EvidenceReader:
    """The fields of one finding's evidence: None if one is absent, an error if it is wrong."""

    fields: Fields

    def _read(self, name: str, how: Callable[[Fields, str], Read]) -> Read | None:
        return how(self.fields, name) if self.fields.has(name) else None

    def number(self, name: str) -> float | None:
        """A finite number."""
        return self._read(name, Fields.number)

    def count(self, name: str) -> int | None:
        """A whole number that is not negative."""
        return self._read(name, lambda fields, name: fields.whole(name, COUNTS))

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """Not too many finite numbers."""
        return self._read(name, short_numbers)

    def lines(self, name: str, most: int = 10) -> list[str]:
        """Short lines of text, none if there are none."""
        return [printable(str(line), 400) for line in (self._read(name, Fields.items) or ())[:most]]

    def line(self, name: str, most: int = LINE) -> str:
        """One short line, empty if there is none."""
        return printable(str(self.fields.values.get(name, "")), most)

    def inner(self, name: str) -> "EvidenceReader | None":
        """The fields of an object within this one."""
        return self.part(name, EvidenceReader)

    def each(self, name: str, most: int) -> "list[EvidenceReader]":
        """The fields of the first objects in a list."""
        return [EvidenceReader(found) for found in (self._read(name, Fields.each) or ())[:most]]

    def part(self, name: str, read: Callable[[Fields], Read]) -> Read | None:
        """One of the aggregates above, as its `from_json` reads it."""
        return self._read(name, lambda fields, name: read(fields.inner(name)))

    def shifts(self) -> list[tuple[ShapShift, float, float | None]]:
        """The shift of each column, how far that is, and the threshold, if there is one."""
        if not self.fields.has("shap"):
            return []
        found = self.fields.each("shap")
        distances, epsilons = short_numbers(self.fields, "distance"), self.fields.items("epsilon")
        if not len(distances) == len(epsilons) == len(found):
            raise self.fields.wrong("shap", "one distribution for each distance and epsilon")
        thresholds = (
            EvidenceReader(replace(fields, values={"epsilon": epsilon})).number("epsilon")
            for fields, epsilon in zip(found, epsilons, strict=True)
        )
        return [*zip(map(ShapShift.from_json, found), distances, thresholds, strict=True)]


MOST_COLUMNS = 200
SENT = {
    SentForm.CODED: "coded: each value as its place, without its column's name",
    SentForm.CLEAR: "clear: names and values as they are",
    SentForm.NEVER: "never sent",
}
CODED_TARGET = "coded: which of two classes, without their names"
RELEASED = {
    TableRole.IDENTIFIER: "dropped for good",
    TableRole.QUASI: "generalized",
    TableRole.KEPT: "as it is",
    TableRole.SENSITIVE: "as it is",
    TableRole.TARGET: "as it is",
}


@dataclass(frozen=True, slots=True)
class About:
    """An account as the page shows it."""

    parties: list[tuple[str, str]]
    counts: list[tuple[str, str]]
    columns: list[tuple[str, str, str, str]]
    """Name, role, what was sent, what a release does with it."""
    n_more: int
    """Columns beyond those that are shown."""
    dropped: list[str]
    seen: list[str]


def about(account: Account) -> About:
    """All that the page says of a submission."""
    parties, shown = account.parties, account.columns[:MOST_COLUMNS]
    return About(
        parties=[
            ("table", printable(parties.table_name, 200)),
            ("controller", printable(parties.controller, 200)),
            ("processor", printable(parties.processor, 200)),
        ],
        counts=[
            ("genuine records", f"{account.genuine:,}"),
            ("sentinels", f"{account.sentinels:,}"),
            ("twins", f"{account.twins:,}"),
        ],
        columns=[
            (printable(c.name, LINE), c.role.value, _sent(c), RELEASED[c.role]) for c in shown
        ],
        n_more=len(account.columns) - len(shown),
        dropped=[printable(c.name, LINE) for c in shown if c.role is TableRole.IDENTIFIER],
        seen=[printable(line, 900) for line in account.seen],
    )


def _sent(column: SentColumn) -> str:
    is_target = column.role is TableRole.TARGET and column.form is SentForm.CODED
    return CODED_TARGET if is_target else SENT[column.form]


def counted(account: Account) -> str:
    """Genuine records and traps, apart."""
    n_traps = account.sentinels + account.twins
    planted = f"{n_traps:,} traps planted among them" if n_traps else "no traps"
    return f"{account.genuine:,} genuine records, {planted}"


UNKNOWN = (
    "No privacy sheet came with this verdict: either nothing was released yet, or this report was"
    " not told. Nothing on this page says how many records a released table singles out, gives the"
    " target of, or joins."
)
REFUSED = "Nothing made from this delivery should be released."


@dataclass(frozen=True, slots=True)
class Point:
    """One figure, and the rest of its sentence."""

    figure: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.figure} {self.meaning}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """The second half of the head."""

    tone: str
    points: tuple[Point, ...] = ()
    note: str = ""


def left_open(verdict: Verdict, sheet: Sheet | None) -> LeftOpen:
    """What a reader must know of the release before anything else."""
    if sheet is None:
        return LeftOpen(tone="quiet", note=UNKNOWN if verdict else f"{UNKNOWN} {REFUSED}")
    by = "within their class by kept and sensitive columns"
    none = "" if sheet.singled_out_by else ": there are none"
    points = [Point(share(sheet.singled_out), f"of the records are singled out {by}{none}")]
    lie = "of the records lie in classes that give"
    if sheet.has_target:
        points.append(Point(share(sheet.same_target), f"{lie} the target away"))
    else:
        points.append(Point("No target", "that a class could give away"))
    worst = max((d.given_away for d in sheet.diversity if not d.is_target), default=0.0)
    if worst:
        points.append(Point(share(worst), f"{lie} the worst sensitive column away"))
    joined = f"of {sheet.n_records:,} records are in classes joined of several groups"
    points.append(Point(f"{sheet.joined.records:,}", joined))
    is_open = sheet.singled_out or any(d.given_away for d in sheet.diversity)
    tone = "mark" if is_open or sheet.overridden else "good"
    return LeftOpen(tone=tone, points=tuple(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What somebody who reads ten lines should know."""

    headline: str
    done: str
    sure: str
    statement: tuple[str, ...] = ()


def evidence_of(finding: Finding) -> EvidenceReader:
    """The evidence of a finding, to be read strictly."""
    where = f"the layer {printable(finding.layer, LINE)}"
    return EvidenceReader(Fields(finding.evidence, where, TableError))


def answers(
    verdict: Verdict, summaries: Mapping[str, str], sheet: Sheet | None, left: LeftOpen
) -> Answers:
    """The answers that the findings give, in words; `summaries` are those that may be shown."""
    open_ = [f.layer for f in verdict.findings if f.decides and f.status is not Status.PASS]
    if set(open_) == {RECEIPT}:
        said = _unsigned(verdict, summaries[RECEIPT])
    elif verdict.outcome is Outcome.VERIFIED:
        said = _verified(verdict)
    elif verdict.outcome is Outcome.VIOLATION:
        said = _violation(verdict, summaries)
    else:
        said = Answers(
            headline="It is not shown that the work was done as agreed.",
            done="Unknown. Nothing deviated, but a check that decides could not be run:"
            f" {', '.join(open_)}.",
            sure="Not sure enough to accept it. Verify again with the submission at hand.",
        )
    return replace(said, statement=_statement(verdict, said, sheet, left))


def _verified(verdict: Verdict) -> Answers:
    if verdict.profile is Profile.PAPER:
        return Answers(
            headline="The delivery passed the checks of the paper.",
            done="It passed every check of the profile “paper”. These checks do not look at every"
            " record, nor at the rule that was applied.",
            sure="Less sure than can be had. Planted records can be recognized, and the model's"
            " fingerprint has a measured rate of error. Verify with the submission at hand for"
            " an exact answer.",
        )
    splits = printable(verdict.finding("splits").guarantee, 400)
    if verdict.profile is Profile.THIN:
        return Answers(
            headline="The work was done as agreed, as far as we could check without the data that"
            " was sent.",
            done="Yes, as far as was checked. Every record came back once, with its own label."
            " Groups and rule were checked for a secret selection of records.",
            sure="That no record is missing, doubled or exchanged is exact. For the rest:"
            f" {splits}",
        )
    evidence = evidence_of(verdict.finding("splits"))
    examined = evidence.count("examined")
    # What a verdict does not say was looked at was not.
    if examined is None or examined != evidence.count("nodes"):
        return Answers(
            headline="The work was done as agreed, as far as a random sample of its steps shows.",
            done="Yes. Every record came back once, in the right group, with true bounds. The rule"
            " was checked at steps drawn at random.",
            sure=f"Records, groups and bounds: exact. The rule: {splits}",
        )
    return Answers(
        headline="The work was done as agreed.",
        done="Yes. Every record that was sent came back once, in the group that the agreed rule"
        " puts it in, with true bounds. The delivery is the one that honest work gives, to the"
        " last bit.",
        sure="As sure as the hash function SHA-256. Every record and every step of the rule was"
        " checked; there is no sampling and no chance of error.",
    )


def _violation(verdict: Verdict, summaries: Mapping[str, str]) -> Answers:
    failed = [f.layer for f in verdict.findings if f.decides and f.status is Status.FAIL]
    n_deciding = sum(f.decides for f in verdict.findings)
    reasons = " ".join(f"{layer}: {summaries[layer]}" for layer in failed)
    if set(failed) <= {"fingerprint"}:
        sure = (
            "Not certain: the check that failed flags honest work too, at a measured rate. Verify"
            " with the submission at hand for an exact answer."
        )
    elif "commitment" in failed:
        sure = (
            "Certain that these files are not the agreed result. A damaged or mixed-up transfer is"
            " one reason; rule it out before you accuse anybody."
        )
    elif "splits" in failed:
        sure = (
            "Certain. The checks that failed never flag honest work, and the files arrived as the"
            " provider sealed them. Whether it is a mistake, another version or deceit, this report"
            " cannot say."
        )
    else:
        # The seal does not bind labels, nor, as the paper has it, which record is in which group.
        sure = (
            "Certain that these files are not the agreed result: the checks that failed never flag"
            " honest work. A damaged transfer can have changed what the provider's seal does not"
            " cover; rule it out before you accuse anybody."
        )
    return Answers(
        headline="The work was not done as agreed.",
        done=f"No. Of the {n_deciding} checks that decide, {len(failed)} failed. {reasons}",
        sure=sure,
    )


def _unsigned(verdict: Verdict, summary: str) -> Answers:
    """Everything that decides passed but the receipt: whose work it is, not what it is worth."""
    work = f"The checks of the work itself passed. {summary}"
    if verdict.outcome is Outcome.VIOLATION:
        return Answers(
            headline="The provider's receipt is not one for these files.",
            done=f"Not as agreed: {work}",
            sure="Certain that this receipt does not cover these files. A damaged or mixed-up"
            " transfer is one reason; rule it out before you accuse anybody.",
        )
    return Answers(
        headline="It is not shown that the provider answers for these files.",
        done=f"As far as was checked, but without the signature that was agreed. {work}",
        sure="Not sure enough to accept it. Once the receipt is there, or the provider's new key"
        " is pinned, verify again.",
    )


ACTIONS = {
    Outcome.VERIFIED: "The delivery may be released; the release checks k again on the genuine"
    " records and measures the risks that remain.",
    Outcome.VIOLATION: "The delivery was not accepted, and nothing made from it should be"
    " released.",
    Outcome.INCONCLUSIVE: "The delivery was not accepted.",
}
NOT_TOLD = "No release is known to this report, so that it does not say what one leaves open."
KEPT = (
    "The delivery is identified by the digests at the end of this report; the verdict file and the"
    " audit log are kept."
)


def _statement(
    verdict: Verdict, said: Answers, sheet: Sheet | None, left: LeftOpen
) -> tuple[str, ...]:
    done = (
        f"{_audited(verdict)}, with verix-anon {printable(verdict.version, LINE)} (profile"
        f" {verdict.profile.value}). The outcome is {verdict.outcome.value}."
    )
    if sheet is None:
        released = [f"{ACTIONS[verdict.outcome]} {NOT_TOLD}"]
    else:
        forced = ", against the verdict or the ledger" if sheet.overridden else ""
        points = "; ".join(str(point) for point in left.points)
        table = (
            f"A table was released{forced}: every class holds at least {sheet.k:,}"
            f" ({sheet.k_agreed:,} agreed). Somebody who knows the quasi-identifiers of a person"
            " and nothing else picks a record of that person with a chance of at most"
            f" {sheet.prosecutor_max:.1%}."
        )
        released = [table, f"What the release leaves open: {points}."]
    return (
        done,
        f"Was the work done as agreed? {said.done}",
        f"How sure is that? {said.sure}",
        *released,
        KEPT,
    )


def _audited(verdict: Verdict) -> str:
    """When we audited which table, of how many records, by whom."""
    first, account = evidence_of(verdict.finding("commitment")), verdict.account
    parties = Parties() if account is None else account.parties
    records, k = first.count("records"), first.count("k")
    of = "" if records is None else f" of {records:,} records, traps among them,"
    if account is not None:
        name = printable(parties.table_name, 200)
        of = f" of {f'“{name}”' if name else 'a table'} ({counted(account)})"
    with_k = "" if k is None else f" with k = {k:,}"
    we = f"we, {printable(parties.controller, 200)}," if parties.controller else "we"
    when = f"On {printable(verdict.time[:10])} {we}" if verdict.time else f"W{we[1:]}"
    processor = printable(parties.processor, 200) or "a processor"
    return f"{when} audited the anonymization{of}{with_k} that {processor} did for us"
