"""Pictures as inline SVG: drawn by matplotlib, coloured by the page.

No text from outside is drawn: names stand in the page, where they are escaped. Each colour is a
placeholder that becomes a variable of the style sheet, so that a picture follows light and dark.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from verix_anon.client.evidence import EvasionCurve, ShapShift, SizeHistogram, TreeMap
from verix_anon.translation import PageTexts

NAMES = ("quiet", "line", "before", "after", "good", "bad", "mark", "card")
VARIABLES = {f"#0000{i:02x}": name for i, name in enumerate(NAMES, 1)}
INK, LINE, BEFORE, AFTER, GOOD, BAD, MARK, CARD = VARIABLES
SETTINGS: dict[str, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "verix",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 10,
}
WIDTH, HEIGHT = 4.3, 2.75
LEAST_CHANCE = 1e-8
LINE_COLOURS = (AFTER, MARK, GOOD, BEFORE)
LINE_STYLES = ("-", "--", "-.")
TREE_COLOURS = {"u": LINE, "r": GOOD, "w": BAD, "U": LINE, "R": GOOD, "W": BAD, "M": MARK}


@contextmanager
def _axes(left: float = 0.17, top: float = 0.87) -> Iterator[Axes]:
    """One plot with fixed margins: to measure every text would take most of the time."""
    with mpl.rc_context():
        # matplotlib obeys a file of the folder that a command is run in: what it can ask for, such
        # as to have another program set the text, is undone.
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]
        figure = Figure(figsize=(WIDTH, HEIGHT))
        yield figure.add_axes((left, 0.19, 0.97 - left, top - 0.19))


@dataclass(frozen=True, slots=True)
class Named:
    """A key that no other picture of the page has, and what a screen reader says."""

    key: str
    label: str


def _svg(axes: Axes, named: Named, **attributes: str) -> Markup:
    """The figure as an element of a page: with a label, and ids only where they are used."""
    figure, buffer = axes.figure, io.BytesIO()
    assert isinstance(figure, Figure)
    figure.savefig(
        buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
    )
    top = ElementTree.fromstring(buffer.getvalue())  # noqa: S314, because we drew it ourselves
    references = " ".join(value for element in top.iter() for value in element.attrib.values())
    for element in top.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name, value in list(element.attrib.items()):
            plain = name.rpartition("}")[2]
            del element.attrib[name]
            if plain != "id":
                for placeholder, variable in VARIABLES.items():
                    value = value.replace(placeholder, f"var(--{variable})")
                element.attrib[plain] = value.replace("#", f"#{named.key}-")
            elif f"#{value}" in references:
                element.attrib[plain] = f"{named.key}-{value}"
    for name in ("width", "height", "version"):
        top.attrib.pop(name, None)
    top.attrib |= {"role": "img", "aria-label": named.label, "focusable": "false"} | attributes
    # Drawn by us, with nothing in it that a page has to escape.
    return Markup(ElementTree.tostring(top, encoding="unicode"))  # noqa: S704


def shift(found: ShapShift, named: Named, t: PageTexts) -> Markup:
    """SHAP values of one column on the raw records and on the delivered ones."""
    with _axes() as axes:
        n = len(found.before)
        edges = [found.low + (found.high - found.low) * i / n for i in range(n + 1)]
        axes.stairs(
            found.before, edges, fill=True, color=BEFORE, alpha=0.55, label=t("pictures.raw")
        )
        axes.stairs(found.after, edges, color=AFTER, lw=1.8, label=t("pictures.delivery"))
        axes.set(xlabel=t("pictures.shap"), ylabel=t("pictures.records"), ylim=(0, None))
        _count(axes.xaxis, t, "g")
        _count(axes.yaxis, t)
        _legend(axes)
        return _svg(axes, named)


def honest_runs(honest: tuple[float, ...], observed: float, named: Named, t: PageTexts) -> Markup:
    """How far honest runs moved the SHAP values, with how far this delivery did."""
    with _axes() as axes:
        axes.hist(honest, bins=12, color=BEFORE, alpha=0.55, label=t("pictures.honest"))
        axes.axvline(observed, color=AFTER, linewidth=2.2, label=t("pictures.this"))
        axes.set(xlabel=t("pictures.distance"), ylabel=t("pictures.honest"), xlim=(0, None))
        _count(axes.xaxis, t, "g")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes)
        return _svg(axes, named)


CHANCES = {1.0: "certain", 1e-2: "percent", 1e-4: "rare", 1e-6: "million", LEAST_CHANCE: "less"}


def _count(axis: Axis, t: PageTexts, form: str = ",.0f") -> None:
    """Write the numbers of an axis as the reader does."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: t.number(round(value, 9), form)))


def _legend(axes: Axes) -> None:
    """Above the plot, where it hides nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.98), ncols=2, borderaxespad=0)


def evasion(curve: EvasionCurve, named: Named, t: PageTexts) -> Markup:
    """The chance to drop a share of the records unseen, with the point that was planned for."""
    with _axes(left=0.31, top=0.96) as axes:
        chance = [max(p, LEAST_CHANCE) for p in curve.probability]
        axes.plot(curve.drop, chance, color=AFTER, linewidth=2)
        axes.set(xscale="log", yscale="log", ylim=(LEAST_CHANCE / 1.6, 2))
        axes.set(xlabel=t("pictures.share_dropped"), ylabel=t("pictures.to_pass"))
        axes.xaxis.set_major_locator(FixedLocator([0.001, 0.01, 0.05, 0.2]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: t.percent(share)))
        axes.yaxis.set_major_locator(FixedLocator(list(CHANCES)))
        words = {chance: t(f"pictures.chance.{key}") for chance, key in CHANCES.items()}
        axes.yaxis.set_major_formatter(FuncFormatter(lambda chance, _: words[chance]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        at = max(curve.operating_probability, LEAST_CHANCE)
        axes.plot([curve.operating_drop], [at], "o", color=BAD, markersize=8)
        axes.axvline(curve.operating_drop, color=BAD, linewidth=0.8, linestyle="--")
        return _svg(axes, named)


@dataclass(frozen=True, slots=True)
class PlotLine:
    """What one rule and diversity give over k."""

    label: str
    k: tuple[int, ...]
    values: tuple[float, ...]
    chosen: int | None = None
    """The k that is marked, if any is."""


def over_k(
    lines: tuple[PlotLine, ...], level: float | None, ylabel: str, named: Named, t: PageTexts
) -> Markup:
    """A measure of releases over k; `level` is what raw records have of it."""
    with _axes() as axes:
        for i, line in enumerate(lines):
            colour, style = LINE_COLOURS[i % len(LINE_COLOURS)], LINE_STYLES[i % len(LINE_STYLES)]
            axes.plot(line.k, line.values, "o", ls=style, color=colour, ms=4, label=line.label)
            if line.chosen is not None:
                at = line.k.index(line.chosen)
                axes.plot(line.chosen, line.values[at], "o", mfc="none", mec=BAD, ms=13, mew=2)
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1, linestyle=":", label=t("pictures.raw"))
        ticks = sorted({k for line in lines for k in line.k})
        axes.set(xscale="log", xlabel="k", ylabel=ylabel)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        _count(axes.xaxis, t)
        _count(axes.yaxis, t, "g")
        axes.margins(x=0.08, y=0.15)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.98), ncols=3, borderaxespad=0)
        return _svg(axes, named)


def sizes(found: SizeHistogram, named: Named, t: PageTexts) -> Markup:
    """How many classes have which size; those that are too small stand out."""
    with _axes(top=0.96) as axes:
        parts = list(zip(found.counts, found.edges[:-1], found.edges[1:], strict=True))
        is_wide = found.edges[-1] > 8 * max(found.edges[0], 1)
        for is_small, colour in ((False, GOOD), (True, BAD)):
            chosen = [part for part in parts if (part[2] <= found.at_least) == is_small]
            axes.bar(
                [low for _, low, _ in chosen],
                [count for count, _, _ in chosen],
                width=[high - low for _, low, high in chosen],
                align="edge",
                color=colour,
                edgecolor=CARD,
                linewidth=0.8,
            )
        axes.axvline(found.at_least, color=MARK, linewidth=1.6, linestyle="--")
        axes.annotate(
            t("pictures.at_least", n=found.at_least),
            (found.at_least, 1),
            xytext=(5, -9),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=INK,
        )
        axes.set(xlabel=t("pictures.in_class"), ylabel=t("pictures.classes"))
        if is_wide:
            axes.set_xscale("log")
            # 1, 3, 10, 30 and so on, within the sizes there are.
            steps = [step * 10**power for power in range(19) for step in (1, 3)]
            within = [step for step in steps if found.edges[0] <= step <= found.edges[-1]]
            axes.xaxis.set_major_locator(FixedLocator(within[:: 1 + len(within) // 8]))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        _count(axes.xaxis, t)
        _count(axes.yaxis, t)
        axes.margins(y=0.18)
        return _svg(axes, named)


def tree(found: TreeMap, named: Named) -> Markup:
    """The tree from the root down, each node as wide as its share of the records."""
    with _axes() as axes:
        axes.set_position((0, 0, 1, 1))
        for depth, level in enumerate(found.levels):
            at = 0
            for letter, width in level:
                if letter != "-":
                    box = Rectangle((at, depth), width, 0.94, facecolor=TREE_COLOURS[letter])
                    # A narrow box would be all edge.
                    box.set(edgecolor=CARD, linewidth=0.7 if letter.islower() else 0)
                    axes.add_patch(box)
                at += width
        axes.set(xlim=(0, found.units), ylim=(len(found.levels), 0))
        axes.set_axis_off()
        # The page may stretch it: it has no text that would suffer.
        return _svg(axes, named, preserveAspectRatio="none")
