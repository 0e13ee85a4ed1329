"""Figures of what the paper does not have: rules, coding, cells, and ARX as measured."""

from experiments.data import TITLES
from experiments.studies.peers.render import utility
from tools.figures.registry import Figure, Result, figure, load, percents

TREES = {
    "paper": ("variance-reduction", "", "2k", 1),
    "paper_k": ("variance-reduction", "", "k", 1),
    "spread": ("importance-spread", "uniform", "k", 1),
    "double": ("importance-spread", "uniform", "2k", 1),
    "auto": ("importance-spread", "auto", "k", 1),
    "hidden": ("importance-spread", "uniform", "k", 2),
    "auto_hidden": ("importance-spread", "auto", "k", 2),
}
"""How trees are asked for: the rule, what weighs the columns, the least leaf, l."""


def _tables(quasi: int) -> list[Result]:
    """The tables of two classes that were measured: samples, or Adult with so many columns."""
    known = load("rules")["raw"]
    return [r for r in known if r["quasi"] == quasi and r["target"] == "target"]


def _released(tree: str, quasi: int = 0) -> list[Result]:
    """What was released under a tree, as intervals, of each of these tables."""
    key = ("rule", "importance", "min_leaf", "l")
    return [
        r
        for r in load("rules")["rows"]
        if tuple(r[name] for name in key) == TREES[tree]
        and (r["quasi"], r["target"], r["view"]) == (quasi, "target", "interval")
    ]


def _rule_cells(tree: str, quasi: int) -> Figure:
    """NCP, the share of records in classes of one label, AUC and F1 on the whole of Adult."""

    def cells() -> str:
        if tree == "raw":
            (raw,) = _tables(quasi)
            return f"0 | - | {raw['auc']:.3f} | {raw['f1']:.3f}"
        (r,) = _released(tree, quasi)
        share = f"{100 * r['same_target']:.0f} %"
        return f"{r['ncp']:.3f} | {share} | {r['auc']:.3f} | {r['f1']:.3f}"

    return cells


for _quasi in (8, 14):
    for _tree in ("raw", *TREES):
        figure(f"rules.adult{_quasi}.{_tree}")(_rule_cells(_tree, _quasi))


def _cells_of(form: str) -> Figure:
    """Size, NCP, AUC and F1 of Adult in one representation."""

    def cells() -> str:
        found = load("representations")
        if form == "raw":
            return f"1.00 | 0 | {found['raw']['auc']:.3f} | {found['raw']['f1']:.3f}"
        (r,) = (r for r in found["rows"] if r["form"] == form)
        return f"{r['size']:.2f} | {r['ncp']:.3f} | {r['auc']:.3f} | {r['f1']:.3f}"

    return cells


for _form in ("raw", "interval", "set", "bounds", "midpoint", "mean", "shares", "model"):
    figure(f"cells.{_form}")(_cells_of(_form))


@figure("cells.seeds")
def cells_seeds() -> str:
    """Over how many seeds representations were measured."""
    return str(load("representations")["seeds"])


@figure("rules.seeds")
def rules_seeds() -> str:
    """Over how many seeds the whole of Adult was measured."""
    return str(_tables(8)[0]["seeds"])


@figure("rules.sample_seeds")
def rules_sample_seeds() -> str:
    """Over how many seeds samples were measured."""
    return str(_tables(0)[0]["seeds"])


def _differences(measure: str, least: int = 1, against: str = "paper") -> list[Result]:
    """Equal weights less the paper's rule, or less `auto`, for each data set, as intervals."""
    wanted = {"against": against, "measure": measure, "l": least, "importance": "uniform"}
    wanted |= {"quasi": 0, "target": "target"}
    return [p for p in load("rules")["pairs"] if wanted.items() <= p.items()]


def _better(measure: str, least: int = 1, end: str = "mean", against: str = "paper") -> Figure:
    """On how many data sets it is better; a lower NCP is."""

    def share() -> str:
        known, sign = _differences(measure, least, against), -1 if measure == "ncp" else 1
        return f"{sum(sign * p[end] > 0 for p in known)} of {len(known)}"

    return share


for _measure in ("auc", "f1", "ncp"):
    figure(f"rules.better.{_measure}")(_better(_measure))
figure("rules.surely.auc")(_better("auc", end="low"))


@figure("rules.surely_lower.auc")
def surely_lower_auc() -> str:
    """On how many data sets AUC is lower, beyond the interval."""
    known = _differences("auc")
    return f"{sum(p['high'] < 0 for p in known)} of {len(known)}"


figure("rules.hidden.auc")(_better("auc", least=2))


def _mean(measure: str, least: int) -> Figure:
    """Equal weights less `auto`, the mean over the data sets."""

    def mean() -> str:
        known = [p["mean"] for p in _differences(measure, least, "auto")]
        return f"{sum(known) / len(known):+.3f}"

    return mean


for _measure in ("auc", "f1", "ncp"):
    for _least, _name in ((1, "equal"), (2, "equal_hidden")):
        figure(f"rules.{_name}.{_measure}")(_better(_measure, _least, against="auto"))
        figure(f"rules.{_name}.{_measure}.mean")(_mean(_measure, _least))


def _lower(against: str) -> Figure:
    """Where F1 is lower with equal weights, by the mean."""

    def titles() -> str:
        found = [TITLES[p["data"]] for p in _differences("f1", against=against) if p["mean"] < 0]
        return " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]])) or "no data set"

    return titles


figure("rules.f1_lower")(_lower("paper"))
figure("rules.equal.f1_lower")(_lower("auto"))


@figure("rules.equal.f1_most")
def rules_equal_f1_most() -> str:
    """The two data sets where equal weights cost most of F1, and how much."""
    known = sorted(_differences("f1", against="auto"), key=lambda p: float(p["mean"]))[:2]
    return " and ".join(f"{TITLES[p['data']]} (by {-p['mean']:.2f})" for p in known)


@figure("rules.equal.adult_f1")
def rules_equal_adult_f1() -> str:
    """What equal weights cost of F1 on the whole of Adult, with 8 and 14 columns."""
    spread, auto = ([_released(t, n)[0]["f1"] for n in (8, 14)] for t in ("spread", "auto"))
    return " to ".join(f"{b - a:.3f}" for a, b in zip(spread, auto, strict=True))


@figure("rules.f1_surely_lower")
def rules_f1_surely_lower() -> str:
    """On how many data sets the whole interval of F1's difference is below 0."""
    known = _differences("f1")
    return f"{sum(p['high'] < 0 for p in known)} of {len(known)}"


@figure("rules.same_target")
def rules_same_target() -> str:
    """The share of records in classes of one label under importance-spread, by data set."""
    return percents(r["same_target"] for r in _released("spread"))


def _ncp(tree: str) -> Figure:
    def span() -> str:
        known = [r["ncp"] for r in _released(tree)]
        return f"{min(known):.2f} to {max(known):.2f}"

    return span


figure("rules.ncp")(_ncp("spread"))
figure("rules.ncp_hidden")(_ncp("hidden"))


@figure("coding.others")
def coding_others() -> str:
    """How many rows of other people the provider knows."""
    return str(load("coding")["others"])


def _coding_cells(sent: str, background: str) -> Figure:
    """Columns named, cells right and nearly right, by data set."""

    def cells() -> str:
        known = [
            r for r in load("coding")["rows"] if (r["sent"], r["background"]) == (sent, background)
        ]
        return " | ".join(_share_span([r[m] for r in known]) for m in ("columns", "cells", "near"))

    return cells


def _share_span(shares: list[float]) -> str:
    least, most = (f"{100 * share:.0f} %" for share in (min(shares), max(shares)))
    return least if least == most else f"{least} to {most}"


for _name, _sent, _background in (
    ("other_people", "coded", "other people"),
    ("other_people_64", "64 places", "other people"),
    ("release", "coded", "the release"),
    ("release_64", "64 places", "the release"),
):
    figure(f"coding.{_name}")(_coding_cells(_sent, _background))


def _exactly(background: str) -> Figure:
    """Which share of the cells a provider with this knowledge finds exactly, by data set."""

    def share() -> str:
        rows = [r for r in load("coding")["rows"] if r["sent"] == "coded"]
        return _share_span([r["cells"] for r in rows if r["background"] == background])

    return share


figure("coding.exactly")(_exactly("other people"))


@figure("peers.utility")
def peers_utility() -> str:
    """NCP and AUC of the tools at the least k at which others were measured."""
    return utility(load("peers")["rows"])


def _arx(name: str) -> Result:
    found: Result = next(r for r in load("arx")["rows"] if r["name"] == name)
    return found


def _arx_cells(name: str) -> Figure:
    """Seconds, NCP, F1 and AUC of one way to run ARX, or of verix-anon on the same day."""

    def cells() -> str:
        r = _arx(name)
        seconds = " / ".join(f"{s:g}" for s in r["seconds"])
        rest = ("-" if r[m] is None else f"{r[m]:.3f}" for m in ("ncp", "f1", "auc"))
        return " | ".join([seconds, *rest])

    return cells


for _name in (
    *("global8", "suppressing8", "local8", "diverse8", "ours8"),
    *("local14", "ours14"),
):
    figure(f"arx.{_name}")(_arx_cells(_name))


@figure("arx.global_seconds")
def arx_global_seconds() -> str:
    """How long ARX's optimal global search takes with its eight hierarchies."""
    return f"{_arx('global8')['seconds'][0]:g} s"


@figure("arx.date")
def arx_date() -> str:
    """When ARX was measured."""
    return str(load("arx")["date"])


def _hospital_loss(column: str) -> Figure:
    """How often a column of the hospital is exact, and its NCP, with both weights."""

    def cells() -> str:
        known = {
            r["weights"]: r
            for r in load("hospital")["rows"]
            if (r["roles"], r["bins"], r["column"]) == ("draft", "none", column)
        }
        both = (known["auto"], known["uniform"])
        return " | ".join(f"{100 * r['exact']:.0f} % | {r['ncp']:.2f}" for r in both)

    return cells


for _name, _column in (
    *(("born", "Geburtsdatum"), ("sex", "Geschlecht"), ("postcode", "PLZ")),
    *(("insurer", "Krankenkasse"), ("admitted", "Aufnahmedatum"), ("ward", "Station")),
):
    figure(f"hospital.{_name}")(_hospital_loss(_column))


def _hospital_counts(roles: str, bins: str) -> Figure:
    """Different birth dates, and the errors of counts by ten years, mean and greatest."""

    def cells() -> str:
        found = load("hospital")
        key = {"roles": roles, "bins": bins, "weights": "uniform"}
        born = key | {"column": "Geburtsdatum"}
        (row,) = (r for r in found["rows"] if born.items() <= r.items())
        spanning = "-" if row["spanning"] is None else f"{100 * row['spanning']:.0f} %"
        said = [f"{row['cells']:,}", spanning]
        for how in ("groupby", "shared"):
            wanted = key | {"how": how, "what": "ten years"}
            (r,) = (r for r in found["counts"] if wanted.items() <= r.items())
            said.append(f"{r['mean']:,.0f} ± {r['mean_error']:,.0f}, worst {r['most']:,.0f}")
        return " | ".join(said)

    return cells


for _roles in ("draft", "few"):
    for _bins in ("none", "10y"):
        figure(f"hospital.{_roles}.{_bins}")(_hospital_counts(_roles, _bins))


@figure("hospital.seeds")
def hospital_seeds() -> str:
    """On how many tables of the hospital it was measured."""
    return str(load("hospital")["seeds"])
