"""One card per layer: what it found, its figures, its pictures, and which were left out.

Evidence is read strictly, because a verdict file may hold anything.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from markupsafe import Markup

from verix_anon.client.evidence import (
    EvasionCurve,
    ShapShift,
    SizeHistogram,
    TreeMap,
    short_numbers,
)
from verix_anon.client.report import pictures
from verix_anon.client.report.pictures import Named
from verix_anon.client.verdict import LAYERS, MEASURES, Finding, Profile, Status
from verix_anon.errors import TableError
from verix_anon.fields import COUNTS, Fields, odds, printable
from verix_anon.translation import PageTexts

Read = TypeVar("Read")

LINE = 100
"""Characters that are shown of a name or another short text."""
MOST_WORDS = 900
TONES = {
    Status.PASS: "good",
    Status.FAIL: "bad",
    Status.INCONCLUSIVE: "mark",
    Status.SKIPPED: "quiet",
}
INFORMING_TONES = dict.fromkeys(Status, "quiet") | {Status.PASS: "good"}
"""A measure is not a warning, because honest work may give any of them."""
FIGURES = {
    "commitment": ("records", "k"),
    "sentinels": ("sentinels", "missing", "changed"),
    "twins": ("pairs", "missing", "changed", "apart"),
    "replay": ("records", "watch"),
    "splits": ("nodes", "examined", "witnesses", "deviations"),
    "fingerprint": ("records",),
    "utility": ("tested_on",),
}
"""The counts that are shown. The others are not."""
LESS_IF_THIN = ("replay", "splits")
"""The layers that prove less in a thin verification."""


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


def evidence_of(finding: Finding) -> EvidenceReader:
    """The evidence of a finding, to be read strictly."""
    where = f"the layer {printable(finding.layer, LINE)}"
    return EvidenceReader(Fields(finding.evidence, where, TableError))


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
    title: str
    """The layer's name in the reader's language."""
    status: str
    tone: str
    """How alarming it is: good, bad, mark or quiet."""
    decides: bool
    question: str
    proves: str
    proves_not: str
    summary: str
    guarantee: str
    seconds: float
    figures: list[tuple[str, str]]
    details: list[str]
    """Where and what, if the layer failed."""
    note: str
    pictures: list[Picture]
    left_out: list[str]


def card(finding: Finding, profile: Profile, t: PageTexts) -> Card:
    """What the page shows of a finding; thresholds and places of watch records stay out."""
    evidence, layer = evidence_of(finding), printable(finding.layer, LINE)
    is_thin = profile is Profile.THIN
    known = layer if layer in LAYERS else "unknown"
    proved = f"{known}.thin" if is_thin and layer in LESS_IF_THIN else known
    drawn: Sequence[Picture | str] = ()
    if layer in DRAW and finding.status is not Status.SKIPPED:
        drawn = list(DRAW[layer](layer, evidence, is_thin, t))
    return Card(
        layer=layer,
        title=t(f"layer.{known}.title") if layer in LAYERS else layer,
        status=finding.status.value,
        tone=(TONES if finding.decides else INFORMING_TONES)[finding.status],
        decides=bool(finding.decides),
        question=t(f"layer.{known}.question"),
        proves=t(f"layer.{proved}.proves"),
        proves_not=t(f"layer.{proved}.proves_not"),
        summary=_summary(finding, evidence, is_thin, t),
        guarantee=t.say(printable(finding.guarantee, MOST_WORDS)),
        seconds=float(finding.seconds),
        figures=_figures(evidence, layer, t),
        details=_details(finding, evidence, is_thin, t),
        note=_note(finding, evidence, is_thin, t),
        pictures=[each for each in drawn if isinstance(each, Picture)],
        left_out=[each for each in drawn if isinstance(each, str)],
    )


def _figures(evidence: EvidenceReader, layer: str, t: PageTexts) -> list[tuple[str, str]]:
    counts = [(key, evidence.count(key)) for key in FIGURES.get(layer, ())]
    found = [(t(f"figures.{layer}.{key}"), t.number(n)) for key, n in counts if n is not None]
    if layer == "commitment" and (engine := evidence.line("engine").strip()):
        found.append((t("figures.engine"), engine))
    if layer == "receipt":
        found += [(t("figures.key"), key) for key in evidence.lines("keys")]
        if finished := evidence.line("finished").strip():
            found.append((t("figures.finished"), t.date(finished)))
    if layer == "fingerprint" and (p := evidence.number("p_value")) is not None:
        found.append((t("figures.p_value"), t.number(p, ".3g")))
    for key in ("raw", "delivery") if layer == "utility" else ():
        if (scores := evidence.part(key, EvidenceReader)) is not None:
            measured = [(shown, scores.number(name)) for name, shown in MEASURES.items()]
            parts = [t.say(shown.format(value)) for shown, value in measured if value is not None]
            found.append((t(f"figures.trained.{key}"), ", ".join(parts)))
    return found


def _summary(finding: Finding, evidence: EvidenceReader, is_thin: bool, t: PageTexts) -> str:
    """The finding's sentence, unless it would name a threshold or a watch record's place."""
    if finding.status is Status.FAIL:
        if finding.layer == "splits":
            return t("cards.deviations", n=evidence.count("deviations") or 0)
        if finding.layer == "replay" and is_thin:
            return t.say(next(iter(evidence.lines("found", 1)), t("cards.records_wrong")))
    return t.say(printable(finding.summary, MOST_WORDS))


def _details(finding: Finding, evidence: EvidenceReader, is_thin: bool, t: PageTexts) -> list[str]:
    if finding.status is not Status.FAIL:
        return []
    if finding.layer == "replay":
        return [t.say(line) for line in evidence.lines("found" if is_thin else "problems")[1:]]
    if finding.layer == "splits" and not is_thin:
        return [
            t(
                "cards.deviation",
                node=each.count("node") or 0,
                n=each.count("records") or 0,
                kind=t.say(each.line("kind", 400)),
            )
            for each in evidence.each("deviating", 10)
        ]
    return []


def _note(finding: Finding, evidence: EvidenceReader, is_thin: bool, t: PageTexts) -> str:
    if finding.status is not Status.FAIL:
        return ""
    if not finding.decides:
        return t("cards.only_informs")
    if is_thin and finding.layer in LESS_IF_THIN:
        return t("cards.place_hidden")
    if finding.layer != "splits":
        return ""
    shown, total = len(evidence.each("deviating", 10)), evidence.count("deviations") or 0
    more = t("cards.first_named", n=shown) + " " if shown < total else ""
    return more + t("cards.values_hidden")


Drawn = Iterator[Picture | str]
"""Pictures, and a sentence for each one that is left out."""


def _left_out(what: str, why: str, t: PageTexts) -> str:
    return t("cards.left_out", what=t(f"cards.what.{what}"), why=t(f"cards.why.{why}"))


def _draw_traps(layer: str, evidence: EvidenceReader, _: bool, t: PageTexts) -> Drawn:
    if evidence.count("sentinels") == 0 or evidence.count("pairs") == 0:
        yield _left_out("evasion", "nothing_planted", t)
        return
    curve = evidence.part("evasion_curve", EvasionCurve.from_json)
    if curve is None:
        yield _left_out("evasion", "old", t)
        return
    chance = t.say(odds(curve.operating_probability))
    caption = t("cards.evasion", drop=t.percent(curve.operating_drop), chance=chance)
    label = f"{t('cards.what.evasion')}. {caption}"
    yield Picture(
        svg=pictures.evasion(curve, Named(layer, label), t),
        title=t("cards.evasion_title"),
        caption=caption,
        head=(t("pictures.dropped"), t("pictures.to_pass")),
        rows=tuple(
            (t.percent(drop), t.say(odds(chance)))
            for drop, chance in zip(curve.drop, curve.probability, strict=True)
        ),
    )


def size_picture(found: SizeHistogram, what: str, t: PageTexts) -> Picture:
    """Sizes against the least that is allowed; `what` is `group` of a delivery or `class`."""
    n_small = sum(
        count
        for count, high in zip(found.counts, found.edges[1:], strict=True)
        if high <= found.at_least
    )
    caption = t(
        f"cards.sizes.{what}",
        smallest=found.smallest,
        largest=found.largest,
        mean=t.number(found.mean, ",.1f"),
        n=int(n_small),
        least=found.at_least,
    )
    label = f"{t('cards.what.histogram')}. {caption}"
    return Picture(
        svg=pictures.sizes(found, Named(what, label), t),
        title=t(f"cards.sizes_title.{what}"),
        caption=caption,
        head=(t("pictures.in_class"), t("pictures.classes")),
        rows=tuple(
            (
                t("cards.from_to", low=int(low), high=int(high) - 1)
                if high - 1 > low
                else t.number(int(low)),
                t.number(int(count)),
            )
            for count, low, high in zip(
                found.counts, found.edges[:-1], found.edges[1:], strict=True
            )
            if count
        ),
    )


def _draw_replay(_: str, evidence: EvidenceReader, __: bool, t: PageTexts) -> Drawn:
    found = evidence.part("leaf_sizes", SizeHistogram.from_json)
    yield _left_out("histogram", "old", t) if found is None else size_picture(found, "group", t)


def _draw_splits(layer: str, evidence: EvidenceReader, is_thin: bool, t: PageTexts) -> Drawn:
    found = None if is_thin else evidence.part("tree_map", TreeMap.from_json)
    if found is None:
        yield _left_out("map", "witnesses" if is_thin else "old", t)
        return
    letters = {letter for level in found.levels for letter, _ in level}
    legend = tuple(
        (variable, t(f"cards.legend.{variable}"))
        for variable, marks in (("good", "rR"), ("bad", "wW"), ("mark", "M"), ("quiet", "uU"))
        if letters & set(marks)
    )
    caption, title = t("cards.map", n=len(found.levels)), t("cards.what.map")
    svg = pictures.tree(found, Named(layer, f"{title}. {caption}"))
    yield Picture(svg=svg, title=title, caption=caption, legend=legend, is_wide=True)


def _draw_fingerprint(_: str, evidence: EvidenceReader, __: bool, t: PageTexts) -> Drawn:
    shifts = evidence.shifts()
    if not shifts:
        yield _left_out("shap", "old", t)
    for i, (found, distance, epsilon) in enumerate(shifts):
        moved, at = t.number(distance, ".3f"), "" if epsilon is None else t.number(epsilon, ".3f")
        caption = t(f"cards.{'moved_of' if at else 'moved'}", distance=moved, threshold=at)
        step = (found.high - found.low) / max(len(found.before), 1)
        yield Picture(
            svg=pictures.shift(found, Named(f"shap-{i}", f"{t('pictures.shap')}. {caption}"), t),
            title=t("cards.shap_of"),
            name=printable(found.feature, LINE),
            caption=caption,
            head=(t("cards.shap_from"), t("pictures.raw"), t("pictures.delivery")),
            rows=tuple(
                (t.number(found.low + i * step, ".3f"), t.number(before), t.number(after))
                for i, (before, after) in enumerate(zip(found.before, found.after, strict=True))
            ),
        )
    honest, distances = evidence.numbers("honest"), evidence.numbers("distance") or (0.0,)
    if not honest:
        yield _left_out("honest", "old" if honest is None else "no_honest", t)
        return
    observed = max(distances)
    caption = t(
        "cards.honest",
        observed=t.number(observed, ".3f"),
        n=len(honest),
        low=t.number(min(honest), ".3f"),
        high=t.number(max(honest), ".3f"),
    )
    label = Named("honest", f"{t('pictures.honest')}. {caption}")
    yield Picture(
        svg=pictures.honest_runs(honest, observed, label, t),
        title=t("cards.honest_title"),
        caption=caption,
        head=(t("cards.honest_head"),),
        rows=tuple((t.number(distance, ".3f"),) for distance in honest),
    )


DRAW: dict[str, Callable[[str, EvidenceReader, bool, PageTexts], Drawn]] = {
    "sentinels": _draw_traps,
    "twins": _draw_traps,
    "replay": _draw_replay,
    "splits": _draw_splits,
    "fingerprint": _draw_fingerprint,
}
