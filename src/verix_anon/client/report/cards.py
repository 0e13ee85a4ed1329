"""One card per layer: what it found, its figures, its pictures, and which were left out."""

from collections.abc import Callable
from dataclasses import dataclass, field

from markupsafe import Markup

from verix_anon.client.evidence import EvasionCurve, SizeHistogram, TreeMap
from verix_anon.client.report import pictures
from verix_anon.client.report.glossary import Words, words
from verix_anon.client.report.head import LINE, EvidenceReader, evidence_of
from verix_anon.client.report.pictures import Named
from verix_anon.client.verdict import MEASURES, Finding, Profile, Status
from verix_anon.fields import printable

MOST_WORDS = 900
TONES = {
    Status.PASS: "good",
    Status.FAIL: "bad",
    Status.INCONCLUSIVE: "mark",
    Status.SKIPPED: "quiet",
}
INFORMING_TONES = TONES | {Status.FAIL: "mark", Status.INCONCLUSIVE: "quiet"}
"""A measure that has no threshold to be judged by is no warning: without honest runs, which
few ask for, every fingerprint is such."""
OLD = "this verdict does not hold what it is drawn from; verify again with this version"
NO_THRESHOLD = "no threshold was calibrated"
FIGURES = {
    "commitment": {"records": "records sent", "k": "agreed k"},
    "sentinels": {"sentinels": "planted", "missing": "missing", "changed": "changed"},
    "twins": {
        "pairs": "pairs planted",
        "missing": "incomplete",
        "changed": "changed",
        "apart": "in two groups",
    },
    "replay": {"records": "records compared", "watch": "watch records"},
    "splits": {
        "nodes": "nodes of the tree",
        "examined": "nodes looked at",
        "witnesses": "witnesses",
        "deviations": "deviating",
    },
    "fingerprint": {"records": "records measured"},
    "utility": {"tested_on": "records tested on"},
}
"""The counts that are shown; what is not named here is not."""
TRAINED = {"raw": "trained on raw records", "delivery": "trained on the delivery"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture, and the same as words and numbers."""

    svg: Markup
    title: str
    name: str = ""
    """A column's name, which the page isolates from the title."""
    caption: str
    legend: tuple[tuple[str, str], ...] = ()
    """Pairs of a colour's variable and its meaning."""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A finding as the page shows it."""

    layer: str
    status: str
    tone: str
    """How alarming it is: good, bad, mark or quiet."""
    decides: bool
    words: Words
    summary: str
    guarantee: str
    seconds: float
    figures: list[tuple[str, str]]
    details: list[str]
    """Where and what, if the layer failed."""
    note: str = ""
    pictures: list[Picture] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def card(finding: Finding, profile: Profile) -> Card:
    """What the page shows of a finding; thresholds and places of watch records stay out."""
    evidence, layer = evidence_of(finding), printable(finding.layer, LINE)
    is_thin = profile is Profile.THIN
    made = Card(
        layer=layer,
        status=finding.status.value,
        tone=(TONES if finding.decides else INFORMING_TONES)[finding.status],
        decides=bool(finding.decides),
        words=words(layer, profile),
        summary=_summary(finding, evidence, is_thin),
        guarantee=printable(finding.guarantee, MOST_WORDS),
        seconds=float(finding.seconds),
        figures=_figures(evidence, layer),
        details=_details(finding, evidence, is_thin),
        note=_note(finding, evidence, is_thin),
    )
    if layer in DRAW and finding.status is not Status.SKIPPED:
        DRAW[layer](made, evidence, is_thin)
    return made


def _figures(evidence: EvidenceReader, layer: str) -> list[tuple[str, str]]:
    counts = [(label, evidence.count(key)) for key, label in FIGURES.get(layer, {}).items()]
    found = [(label, f"{count:,}") for label, count in counts if count is not None]
    if layer == "commitment" and (engine := evidence.line("engine").strip()):
        found.append(("engine, in the provider's words", engine))
    if layer == "receipt":
        found += [("signed with the key", key) for key in evidence.lines("keys")]
        if finished := evidence.line("finished").strip():
            found.append(("finished, in the provider's words", finished))
    if layer == "fingerprint" and (p := evidence.number("p_value")) is not None:
        found.append(("p-value against honest runs", f"{p:.3g}"))
    for key, label in TRAINED.items() if layer == "utility" else ():
        if (scores := evidence.inner(key)) is not None:
            measured = [(shown, scores.number(name)) for name, shown in MEASURES.items()]
            parts = [shown.format(value) for shown, value in measured if value is not None]
            found.append((label, ", ".join(parts)))
    return found


def _summary(finding: Finding, evidence: EvidenceReader, is_thin: bool) -> str:
    """The finding's sentence, unless it would name a threshold or a watch record's place."""
    if finding.status is Status.FAIL:
        if finding.layer == "splits":
            count = evidence.count("deviations")
            return f"{count or 0:,} of the nodes looked at are not what the rule gives."
        if finding.layer == "replay" and is_thin:
            return next(iter(evidence.lines("found", 1)), "Records or groups are wrong.")
    return printable(finding.summary, MOST_WORDS)


def _details(finding: Finding, evidence: EvidenceReader, is_thin: bool) -> list[str]:
    if finding.status is not Status.FAIL:
        return []
    if finding.layer == "replay":
        return evidence.lines("found" if is_thin else "problems")[1:]
    if finding.layer == "splits" and not is_thin:
        return [
            f"Node {each.count('node') or 0:,}, with {each.count('records') or 0:,} records:"
            f" {each.line('kind', 400)}."
            for each in evidence.each("deviating", 10)
        ]
    return []


def _note(finding: Finding, evidence: EvidenceReader, is_thin: bool) -> str:
    if finding.status is Status.FAIL and not finding.decides:
        return "This does not count for the verdict: honest work may give it too."
    if finding.status is not Status.FAIL or finding.layer not in ("replay", "splits"):
        return ""
    if is_thin:
        return (
            "Where it was found is in the verdict file and not here: it would show which records"
            " are watched. Do not pass it on to the provider."
        )
    if finding.layer == "replay":
        return ""
    shown, total = len(evidence.each("deviating", 10)), evidence.count("deviations") or 0
    more = f"The first {shown} are named. " if shown < total else ""
    return f"{more}The values of the splits are in the verdict file only: each is a record's."


def _chance(probability: float) -> str:
    if probability < 1e-6:
        return "less than 1 in a million"
    return f"1 in {1 / probability:,.0f}" if probability < 0.1 else f"{probability * 100:.0f} %"


def _draw_traps(made: Card, evidence: EvidenceReader, _: bool) -> None:
    if evidence.count("sentinels") == 0 or evidence.count("pairs") == 0:
        made.left_out.append("The evasion curve is left out: nothing was planted.")
        return
    curve = evidence.part("evasion_curve", EvasionCurve.from_json)
    if curve is None:
        made.left_out.append(f"The evasion curve is left out: {OLD}.")
        return
    caption = (
        f"The dot is the drop of {curve.operating_drop * 100:g} % that traps are planned for: it"
        f" passes with a chance of {_chance(curve.operating_probability)}. The curve holds for a"
        " provider that drops blindly and returns nothing for what it dropped."
    )
    made.pictures.append(
        Picture(
            svg=pictures.evasion(curve, Named(made.layer, f"Evasion curve. {caption}")),
            title="How likely a provider that drops records passes",
            caption=caption,
            head=("records dropped", "chance to pass"),
            rows=tuple(
                (f"{drop * 100:g} %", f"{chance:.2g}")
                for drop, chance in zip(curve.drop, curve.probability, strict=True)
            ),
        )
    )


def size_picture(found: SizeHistogram, key: str, title: str, what: str) -> Picture:
    """Class sizes against the least that is allowed."""
    n_small = sum(
        count
        for count, high in zip(found.counts, found.edges[1:], strict=True)
        if high <= found.at_least
    )
    caption = (
        f"The smallest {what} holds {found.smallest:,}, the largest {found.largest:,}, the average"
        f" {found.mean:,.1f}. {f'{n_small:,.0f} hold' if n_small else 'None holds'} fewer than"
        f" {found.at_least:,}."
    )
    return Picture(
        svg=pictures.sizes(found, Named(key, f"Histogram. {caption}")),
        title=title,
        caption=caption,
        head=("records", "classes"),
        rows=tuple(
            (f"{low:,.0f} to {high - 1:,.0f}" if high - 1 > low else f"{low:,.0f}", f"{count:,.0f}")
            for count, low, high in zip(
                found.counts, found.edges[:-1], found.edges[1:], strict=True
            )
            if count
        ),
    )


def _draw_replay(made: Card, evidence: EvidenceReader, _: bool) -> None:
    found = evidence.part("leaf_sizes", SizeHistogram.from_json)
    if found is None:
        made.left_out.append(f"The histogram of group sizes is left out: {OLD}.")
        return
    title = "Sizes of the delivered groups, traps included, against the least agreed"
    made.pictures.append(size_picture(found, made.layer, title, "group"))


def _draw_splits(made: Card, evidence: EvidenceReader, is_thin: bool) -> None:
    if is_thin:
        made.left_out.append(
            "The map of the tree is left out: it would show which records are witnesses."
        )
        return
    found = evidence.part("tree_map", TreeMap.from_json)
    if found is None:
        made.left_out.append(f"The map of the tree is left out: {OLD}.")
        return
    letters = {letter for level in found.levels for letter, _ in level}
    legend = tuple(
        (variable, meaning)
        for variable, meaning, marks in (
            ("good", "what the rule gives", "rR"),
            ("bad", "deviates", "wW"),
            ("mark", "small nodes, some of them looked at", "M"),
            ("quiet", "not looked at", "uU"),
        )
        if letters & set(marks)
    )
    caption = (
        f"All records at the top; each row below is one split further, {len(found.levels)} levels"
        " in all. A box is as wide as its share of the records. Nodes too small to be drawn are"
        " taken together with their neighbours, and one that deviates shows through."
    )
    made.pictures.append(
        Picture(
            svg=pictures.tree(found, Named(made.layer, f"Map of the tree. {caption}")),
            title="Map of the tree",
            caption=caption,
            legend=legend,
            is_wide=True,
        )
    )


def _draw_fingerprint(made: Card, evidence: EvidenceReader, _: bool) -> None:
    shifts = evidence.shifts()
    if not shifts:
        made.left_out.append(f"The SHAP distributions are left out: {OLD}.")
    for i, (found, distance, epsilon) in enumerate(shifts):
        is_calibrated = epsilon is not None
        threshold = f"the threshold is {epsilon:.3f}" if is_calibrated else NO_THRESHOLD
        caption = f"Moved by {distance:.3f}; {threshold}."
        step = (found.high - found.low) / max(len(found.before), 1)
        made.pictures.append(
            Picture(
                svg=pictures.shift(found, Named(f"shap-{i}", f"SHAP values. {caption}")),
                title="SHAP values of",
                name=printable(found.feature, LINE),
                caption=caption,
                head=("SHAP value from", "raw", "delivery"),
                rows=tuple(
                    (f"{found.low + i * step:.3f}", f"{before:,.0f}", f"{after:,.0f}")
                    for i, (before, after) in enumerate(zip(found.before, found.after, strict=True))
                ),
            )
        )
    _draw_honest(made, evidence)


def _draw_honest(made: Card, evidence: EvidenceReader) -> None:
    honest, distances = evidence.numbers("honest"), evidence.numbers("distance") or (0.0,)
    if not honest:
        why = OLD if honest is None else "none were made; ask for them with prepare --calibrate 20"
        made.left_out.append(f"The comparison with honest runs is left out: {why}.")
        return
    observed = max(distances)
    caption = (
        f"This delivery moved by {observed:.3f} at most; {len(honest)} honest runs on samples moved"
        f" by {min(honest):.3f} to {max(honest):.3f}."
    )
    made.pictures.append(
        Picture(
            svg=pictures.honest_runs(honest, observed, Named("honest", f"Honest runs. {caption}")),
            title="Against honest runs",
            caption=caption,
            head=("honest runs, by distance",),
            rows=tuple((f"{distance:.3f}",) for distance in honest),
        )
    )


DRAW: dict[str, Callable[[Card, EvidenceReader, bool], None]] = {
    "sentinels": _draw_traps,
    "twins": _draw_traps,
    "replay": _draw_replay,
    "splits": _draw_splits,
    "fingerprint": _draw_fingerprint,
}
