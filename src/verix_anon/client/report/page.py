"""Pages of HTML: what they show goes into templates, which escape everything.

At the top of a report stand its answers, what a release leaves open, and what was sent. There are
three answers: was the work done as agreed, how sure is that, and what to tell others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verix_anon import __version__
from verix_anon.client.audit_subject import Account, SentColumn, SentForm
from verix_anon.client.manifest import Parties
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.report import mark_of, pictures
from verix_anon.client.report.cards import LINE, Card, Picture, card, evidence_of, size_picture
from verix_anon.client.table.task import TableRole
from verix_anon.client.verdict import RECEIPT, Outcome, Profile, Status, Verdict
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.html_templates import templates_of
from verix_anon.translation import PageTexts, keys

if TYPE_CHECKING:
    from verix_anon.client.explore import Exploration, Explored

MOST_FINDINGS = 20
MOST_FILES = 100
MOST_NOTE = 500
TEMPLATES = templates_of("verix_anon.client.report")
TEMPLATES.filters["printable"] = printable


def page(verdict: Verdict, sheet: Sheet | None, language: str) -> str:
    """The whole file."""
    if len(verdict.findings) > MOST_FINDINGS or len(verdict.files) > MOST_FILES:
        raise TableError("the verdict holds too much to be one that verix-anon wrote")
    t = PageTexts(language)
    picture = None
    if sheet is not None and sheet.class_sizes is not None:
        picture = size_picture(sheet.class_sizes, "class", t)
    cards = [card(finding, verdict.profile, t) for finding in verdict.findings]
    view = {
        "verdict": verdict,
        "mark": mark_of(verdict),
        "time": t.date(printable(verdict.time, LINE)),
        "left_open": left_open(verdict, sheet, t),
        "answers": answers(verdict, cards, sheet, t),
        "about": None if verdict.account is None else about(verdict.account, t),
        "cards": cards,
        "sheet": sheet,
        "sheet_picture": picture,
        "glossary": glossary(t),
    }
    return rendered("report.html", view, t)


def rendered(template: str, view: Mapping[str, object], t: PageTexts) -> str:
    """A template of this folder with what it shows."""
    shown = {"view": view, "t": t, "number": t.number, "date": t.date}
    return TEMPLATES.get_template(template).render(shown) + "\n"


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
            (t(f"about.{name}"), t.number(getattr(account, name)))
            for name in ("genuine", "sentinels", "twins")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOpen:
    """The second half of the head."""

    tone: str
    points: tuple[tuple[str, str], ...] = ()
    """Figures, each with the rest of its sentence."""
    note: str = ""


def left_open(verdict: Verdict, sheet: Sheet | None, t: PageTexts) -> LeftOpen:
    """What a reader must know of the release before anything else."""
    if sheet is None:
        refused = "" if verdict else " " + t("open.refused")
        return LeftOpen(tone="quiet", note=t("open.unknown") + refused)
    by = "singled_out" if sheet.singled_out_by else "none_to_single_out"
    points = [(t.share(sheet.singled_out), t(f"open.{by}"))]
    if sheet.has_target:
        points.append((t.share(sheet.same_target), t("open.target")))
    else:
        points.append((t("open.no_target"), t("open.no_target_said")))
    worst = max((d.given_away for d in sheet.diversity if not d.is_target), default=0.0)
    if worst:
        points.append((t.share(worst), t("open.sensitive")))
    points.append((t.number(sheet.joined.records), t("open.joined", n=sheet.n_records)))
    is_open = sheet.singled_out or any(d.given_away for d in sheet.diversity) or sheet.overridden
    return LeftOpen(tone="mark" if is_open else "good", points=tuple(points))


def answers(
    verdict: Verdict, cards: Sequence[Card], sheet: Sheet | None, t: PageTexts
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
        more = {"all": sum(f.decides for f in verdict.findings), "failed": len(failed)}
        case, more["reasons"] = _violation(failed), reasons
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
    # Nodes that the verdict does not count as examined were not examined.
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
        by = t("report.record") if sheet.counted_by == "record" else sheet.counted_by
        yield t(
            "statement.released",
            forced=t("statement.forced") if sheet.overridden else "",
            k=sheet.k,
            agreed=sheet.k_agreed,
            by=printable(by, LINE),
            risk=t.share(sheet.prosecutor_max),
        )
        points = "; ".join(" ".join(point) for point in left_open(verdict, sheet, t).points)
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


def glossary(t: PageTexts) -> dict[str, list[tuple[str, str]]]:
    """Terms and their meanings, by subject, for a reader who has not read the specification."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key in keys("glossary"):
        group, _, part = key.partition(".")
        if part == "title":
            found[group] = []
        elif part.endswith(".term"):
            meaning = part.removesuffix("term") + "meaning"
            found[group].append((t(f"glossary.{key}"), t(f"glossary.{group}.{meaning}")))
    return {t(f"glossary.{group}.title"): entries for group, entries in found.items()}


def exploration_page(found: "Exploration", language: str) -> str:
    """The whole file."""
    t = PageTexts(language)
    view = {
        "version": __version__,
        "records": t.number(found.n_records),
        "target": "" if found.target is None else printable(found.target, LINE),
        "chosen": found.chosen,
        "left": found.chosen or found.rows[0],
        "head": [t.say(title) for title in found.head],
        "rows": [
            (row.is_chosen, [t.say(cell) for cell in cells])
            for row, cells in zip(found.rows, found.cells(), strict=True)
        ],
        "notes": [t.say(printable(note, MOST_NOTE)) for note in found.notes()],
        "pictures": list(_pictures(found, t)),
    }
    return rendered("explore.html", view, t)


def _pictures(found: "Exploration", t: PageTexts) -> Iterator[Picture]:
    # With it comes the release, which the report of a verdict does not need.
    from verix_anon.client.explore import TITLES

    def picture(
        name: str, caption: str, of: "Callable[[Explored], float]", level: float | None = None
    ) -> Picture:
        lines, title = tuple(_lines(found, of)), t.say(name)
        label = t("explore.picture", title=title, n=len(lines))
        named = pictures.Named("".join(name.lower().split()), label)
        svg = pictures.over_k(lines, level, title, named, t)
        return Picture(svg=svg, title=title, caption=t(f"explore.captions.{caption}"))

    yield picture("Risk", "risk", lambda row: row.prosecutor_max)
    yield picture("NCP", "ncp", lambda row: row.ncp)
    for name, raw in found.raw.items():
        yield picture(TITLES[name], "score", lambda row, name=name: row.scores[name], raw)  # type: ignore[misc]
    if found.target is not None:
        yield picture("One label", "label", lambda row: row.same_target)


def _lines(found: "Exploration", of: "Callable[[Explored], float]") -> Iterator[pictures.PlotLine]:
    """One for each rule and l."""
    for rule, l in dict.fromkeys((row.rule, row.l) for row in found.rows):  # noqa: E741
        rows = sorted((r for r in found.rows if (r.rule, r.l) == (rule, l)), key=lambda r: r.k)
        yield pictures.PlotLine(
            f"{rule}, l = {l:,}" if found.has_rules else f"l = {l:,}",
            tuple(row.k for row in rows),
            tuple(of(row) for row in rows),
            next((row.k for row in rows if row.is_chosen), None),
        )
