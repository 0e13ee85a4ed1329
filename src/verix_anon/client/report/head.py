"""The words at the top of a report: its answers, what a release leaves open, what was sent.

There are three answers: was the work done as agreed, how sure is that, and what to tell others.
Evidence is read strictly, because a verdict file may hold anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from verix_anon.client.audit_subject import Account, SentColumn, SentForm
from verix_anon.client.evidence import ShapShift, short_numbers
from verix_anon.client.manifest import Parties
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.table.task import TableRole
from verix_anon.client.verdict import RECEIPT, Finding, Outcome, Profile, Status, Verdict
from verix_anon.errors import TableError
from verix_anon.fields import COUNTS, Fields, printable
from verix_anon.translation import PageTexts

if TYPE_CHECKING:
    from verix_anon.client.report.cards import Card

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
RELEASED = {TableRole.IDENTIFIER: "dropped", TableRole.QUASI: "generalized"}
"""What a release does with columns of a role; the others are published as they are."""


def about(account: Account, t: PageTexts) -> dict[str, object]:
    """All that the page says of a submission."""
    parties, shown = account.parties, account.columns[:MOST_COLUMNS]
    return {
        "parties": [
            (t("about.table"), printable(parties.table_name, 200)),
            (t("about.controller"), printable(parties.controller, 200)),
            (t("about.processor"), printable(parties.processor, 200)),
        ],
        "counts": [
            (t("about.genuine"), t.number(account.genuine)),
            (t("about.sentinels"), t.number(account.sentinels)),
            (t("about.twins"), t.number(account.twins)),
        ],
        "columns": [
            (
                printable(c.name, LINE),
                t(f"role.{c.role}"),
                t(f"about.sent.{_sent(c)}"),
                t(f"about.released.{RELEASED.get(c.role, 'kept')}"),
            )
            for c in shown
        ],
        "n_more": len(account.columns) - len(shown),
        "dropped": [printable(c.name, LINE) for c in shown if c.role is TableRole.IDENTIFIER],
        "seen": [t.say(printable(line, 900)) for line in account.seen],
    }


def _sent(column: SentColumn) -> str:
    is_target = column.role is TableRole.TARGET and column.form is SentForm.CODED
    return "coded_target" if is_target else column.form.name.lower()


@dataclass(frozen=True, slots=True)
class Point:
    """One figure, and the rest of its sentence."""

    figure: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.figure} {self.meaning}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """The second half of the head."""

    tone: str
    points: tuple[Point, ...] = ()
    note: str = ""


def left_open(verdict: Verdict, sheet: Sheet | None, t: PageTexts) -> LeftOpen:
    """What a reader must know of the release before anything else."""
    if sheet is None:
        refused = "" if verdict else " " + t("open.refused")
        return LeftOpen(tone="quiet", note=t("open.unknown") + refused)
    by = "singled_out" if sheet.singled_out_by else "none_to_single_out"
    points = [Point(t.share(sheet.singled_out), t(f"open.{by}"))]
    if sheet.has_target:
        points.append(Point(t.share(sheet.same_target), t("open.target")))
    else:
        points.append(Point(t("open.no_target"), t("open.no_target_said")))
    worst = max((d.given_away for d in sheet.diversity if not d.is_target), default=0.0)
    if worst:
        points.append(Point(t.share(worst), t("open.sensitive")))
    points.append(Point(t.number(sheet.joined.records), t("open.joined", n=sheet.n_records)))
    is_open = sheet.singled_out or any(d.given_away for d in sheet.diversity)
    tone = "mark" if is_open or sheet.overridden else "good"
    return LeftOpen(tone=tone, points=tuple(points))


def evidence_of(finding: Finding) -> EvidenceReader:
    """The evidence of a finding, to be read strictly."""
    where = f"the layer {printable(finding.layer, LINE)}"
    return EvidenceReader(Fields(finding.evidence, where, TableError))


def answers(
    verdict: Verdict, cards: "Sequence[Card]", sheet: Sheet | None, t: PageTexts
) -> dict[str, object]:
    """What somebody who reads ten lines should know: a headline, two answers and a statement."""
    open_ = [f.layer for f in verdict.findings if f.decides and f.status is not Status.PASS]
    shown = {card.layer: card for card in cards}
    more: dict[str, object] = {}
    if set(open_) == {RECEIPT}:
        is_false = verdict.outcome is Outcome.VIOLATION
        case, more = "unsigned_false" if is_false else "unsigned", {"why": shown[RECEIPT].summary}
    elif verdict.outcome is Outcome.VERIFIED:
        case, more = _verified(verdict, t)
    elif verdict.outcome is Outcome.VIOLATION:
        failed = [f.layer for f in verdict.findings if f.decides and f.status is Status.FAIL]
        reasons = " ".join(f"{shown[name].title}: {shown[name].summary}" for name in failed)
        n_deciding = sum(f.decides for f in verdict.findings)
        case, more = _violation(failed), {"all": n_deciding, "failed": len(failed)}
        more["reasons"] = reasons
    else:
        case, more = "inconclusive", {"layers": ", ".join(shown[name].title for name in open_)}
    said = {part: t(f"answers.{case}.{part}", **more) for part in ("headline", "done", "sure")}
    return {**said, "statement": [*_statement(verdict, said, sheet, t)]}


def _verified(verdict: Verdict, t: PageTexts) -> tuple[str, dict[str, object]]:
    """Which pass it is, and what the check of the rule is worth."""
    if verdict.profile is Profile.PAPER:
        return "paper", {}
    finding = verdict.finding("splits")
    splits: dict[str, object] = {"splits": t.say(printable(finding.guarantee, 400))}
    if verdict.profile is Profile.THIN:
        return "thin", splits
    evidence = evidence_of(finding)
    examined = evidence.count("examined")
    # What a verdict does not say was checked was not.
    is_sample = examined is None or examined != evidence.count("nodes")
    return ("sample", splits) if is_sample else ("full", {})


def _violation(failed: Sequence[str]) -> str:
    """Which failure it is, and so how sure it is."""
    if set(failed) <= {"fingerprint"}:
        return "maybe"
    if "commitment" in failed:
        return "files"
    # The seal does not bind labels, nor, as the paper has it, which record is in which group.
    return "rule" if "splits" in failed else "records"


def _statement(
    verdict: Verdict, said: Mapping[str, str], sheet: Sheet | None, t: PageTexts
) -> Iterator[str]:
    """What to tell the regulator."""
    outcome = verdict.outcome.value
    audited = t(
        "statement.audited",
        **_audited(verdict, t),
        version=printable(verdict.version, LINE),
        profile=verdict.profile.value,
        outcome=t(f"outcome.{outcome}"),
    )
    yield audited[:1].upper() + audited[1:]
    yield f"{t('report.was_done')} {said['done']}"
    yield f"{t('statement.how_sure')} {said['sure']}"
    if sheet is None:
        yield f"{t(f'statement.action.{outcome}')} {t('statement.not_told')}"
    else:
        yield t(
            "statement.released",
            forced=t("statement.forced") if sheet.overridden else "",
            k=sheet.k,
            agreed=sheet.k_agreed,
            risk=t.share(sheet.prosecutor_max),
        )
        points = "; ".join(str(point) for point in left_open(verdict, sheet, t).points)
        yield t("statement.open", points=points)
    yield t("statement.kept")


def _audited(verdict: Verdict, t: PageTexts) -> dict[str, str]:
    """When we audited which table, of how many records, by whom."""
    first, account = evidence_of(verdict.finding("commitment")), verdict.account
    parties = Parties() if account is None else account.parties
    records, k = first.count("records"), first.count("k")
    of = "" if records is None else t("statement.of_records", n=records)
    if account is not None:
        name = printable(parties.table_name, 200)
        n_traps = account.sentinels + account.twins
        of = t(
            "statement.of_table",
            table=t("statement.named", name=name) if name else t("statement.a_table"),
            genuine=account.genuine,
            traps=t("statement.traps", n=n_traps) if n_traps else t("statement.no_traps"),
        )
    controller, processor = printable(parties.controller, 200), printable(parties.processor, 200)
    return {
        "when": t("statement.on", day=t.date(printable(verdict.time[:10]))) if verdict.time else "",
        "we": t("statement.we_named", name=controller) if controller else t("statement.we"),
        "of": of,
        "with_k": "" if k is None else t("statement.with_k", k=k),
        "processor": processor or t("statement.a_processor"),
    }
