"""Figures of the paper's studies and of the benchmarks."""

from experiments.core.stats import wilson
from experiments.studies import names
from experiments.studies.detection.published import PROFILES
from experiments.studies.detection.study import epsilons, outcome
from experiments.studies.power.render import SURE
from tools.figures.registry import Figure, Result, figure, load, percents


def _leakage(measure: str, *, whole: bool, rule: str = "variance-reduction") -> str:
    return percents(
        r[measure] for r in load("leakage")["rows"] if r["whole"] is whole and r["rule"] == rule
    )


@figure("leakage.same_target")
def same_target() -> str:
    """The share of records in classes that share the target, by data set; samples."""
    return _leakage("homogeneous", whole=False)


@figure("leakage.same_target_whole")
def same_target_whole() -> str:
    """The same, for the data sets as a whole."""
    return _leakage("homogeneous", whole=True)


@figure("leakage.singled_out")
def singled_out() -> str:
    """The share of records alone in the meeting of two releases, by data set; samples."""
    return _leakage("singled_out_by_two", whole=False)


@figure("leakage.singled_out_whole")
def singled_out_whole() -> str:
    """The same, for the data sets as a whole."""
    return _leakage("singled_out_by_two", whole=True)


@figure("leakage.singled_out_whole_default")
def singled_out_whole_default() -> str:
    """The same under the default rule."""
    return _leakage("singled_out_by_two", whole=True, rule="importance-spread")


@figure("leakage.singled_out_whole_auto")
def singled_out_whole_auto() -> str:
    """The same with the weights of a model."""
    rule = "importance-spread, weighed by a model"
    return _leakage("singled_out_by_two", whole=True, rule=rule)


def _joining(measure: str, digits: int, *, is_now: bool) -> str:
    """The least and the greatest mean over tables and traps, of one rule for joining."""
    found = load("minimality")
    small, chance = (found["small"], found["chance"]) if is_now else (0, 0)
    rows = [r for r in found["rows"] if (r["small"], r["chance"]) == (small, chance)]
    least, most = (f"{100 * end(r[measure] for r in rows):.{digits}f} %" for end in (min, max))
    return least if least == most else f"{least} to {most}"


@figure("minimality.before")
def certain_before() -> str:
    """Who was certain by the old joining at a published share of 95 %, by table."""
    return _joining("certain_0.95", 1, is_now=False)


@figure("minimality.certain")
def certain_now() -> str:
    """Who is certain by the new joining, by table."""
    return _joining("certain_0.95", 2, is_now=True)


@figure("minimality.undecided")
def undecided_now() -> str:
    """Of whom the attack says nothing, by table."""
    return _joining("undecided", 2, is_now=True)


@figure("minimality.bound")
def bound_now() -> str:
    """What the privacy sheet states as a bound, by table."""
    return _joining("bound", 2, is_now=True)


@figure("minimality.more_ncp")
def more_ncp() -> str:
    """What the new joining costs more than the old one, by table."""
    return _joining("more_ncp", 1, is_now=True)


def _calibrated(provider: str) -> str:
    """How often the paper's calibrated layers flag a provider, by data set."""
    return percents(
        r["rate"]
        for r in load("detection")["rows"]
        if (r["provider"], r["approach"]) == (provider, "paper, calibrated") and r["data"] != "all"
    )


@figure("detection.false_alarms")
def false_alarms() -> str:
    """How often the paper's way accuses an honest provider, by data set."""
    return _calibrated("honest")


@figure("detection.blind_caught")
def blind_caught() -> str:
    """How often the paper's way catches a provider that splits blindly, by data set."""
    return _calibrated("approximate")


@figure("detection.seeds")
def detection_seeds() -> str:
    """Over how many seeds detection was measured."""
    return str(load("detection")["seeds"])


def _single(threshold: str) -> Figure:
    """How many scenarios of the paper's single run are judged right with a threshold."""

    def right() -> str:
        said = [
            (provider == "honest") != outcome(one["providers"][provider], threshold, epsilons(one))
            for one in load("detection")["single_run"].values()
            for provider in PROFILES
        ]
        return f"{sum(said)} of {len(said)}"

    return right


figure("detection.single")(_single("calibrated"))
figure("detection.circular")(_single("circular"))


@figure("detection.adversaries")
def detection_adversaries() -> str:
    """How many providers that misbehave the paper's experiment was run with."""
    return _adversaries("detection")


@figure("contracts.adversaries")
def contracts_adversaries() -> str:
    """How many providers that misbehave were tried under both rules."""
    return _adversaries("contracts")


def _adversaries(study: str) -> str:
    return str(len({r["provider"] for r in load(study)["rows"]} - {"honest"}))


def _honest(profile: str) -> Figure:
    """How often a profile accuses an honest provider, under both rules and both weightings."""

    def alarms() -> str:
        rows = [r for r in _contracts() if r["provider"] == "honest"]
        return f"{sum(r[profile] for r in rows):,} of {sum(r['runs'] for r in rows):,}"

    return alarms


def _deviating(profile: str) -> Figure:
    """How many deliveries that are not the honest one a profile catches."""

    def caught() -> str:
        rows = [r for r in _contracts() if r["provider"] != "honest"]
        return f"{sum(r[profile] for r in rows):,} of {sum(r['deviated'] for r in rows):,}"

    return caught


def _contracts() -> list[Result]:
    return [r for r in load("contracts")["rows"] if r["target"] == "all"]


@figure("contracts.alarms_most")
def contracts_alarms_most() -> str:
    """The end of the interval of the false alarms, under both rules and both weightings."""
    rows = [r for r in _contracts() if r["provider"] == "honest"]
    runs = sum(r["runs"] for r in rows)
    alarms = max(sum(r[profile] for r in rows) for profile in ("full", "thin"))
    return f"{100 * wilson(alarms, runs)[1]:.1f} %"


for _profile in ("full", "thin"):
    figure(f"contracts.{_profile}_alarms")(_honest(_profile))
    figure(f"contracts.{_profile}_caught")(_deviating(_profile))


def _below(study: str, tries: str) -> Figure:
    """How many comparisons lie below what is stated with all of their interval."""

    def below() -> str:
        # Where at least this is stated, hardly any result can lie below it.
        rows = [r for r in load(study)["rows"] if r[tries] and r["stated"] < SURE]
        return f"{sum(r['high'] < r['stated'] for r in rows)} of {len(rows)}"

    return below


figure("power.below")(_below("power", "tries"))
figure("cheaters.below")(_below("cheaters", "deviated"))


def _suppression(measure: str, least: int) -> Figure:
    """The change by the greatest share that may be left out, with its standard error."""

    def change() -> str:
        known = [
            g for g in load("suppression")["gains"] if (g["l"], g["measure"]) == (least, measure)
        ]
        gain = max(known, key=lambda g: float(g["share"]))
        return f"{gain['mean']:+.3f} ± {gain['error']:.3f}"

    return change


for _measure in ("ncp", "auc"):
    figure(f"suppression.{_measure}")(_suppression(_measure, 1))
    figure(f"suppression.{_measure}_hidden")(_suppression(_measure, 2))


@figure("traps.free")
def free_of_traps() -> str:
    """The share of records that an informed provider names as free of traps, by data set."""
    rows = load("traps")["rows"]
    return percents(r["free_of_traps"] for r in rows if r["traps"] == "paper")


def _uncertain(measure: str) -> str:
    """The least and the greatest mean of |P(class 1) - 1/2| over the data sets."""
    means = [r[measure] for r in load("traps")["unsent"]]
    return f"{min(means):.2f} to {max(means):.2f}"


@figure("traps.everybody")
def uncertain_of_everybody() -> str:
    """How uncertain a target that is not sent is for everybody."""
    return _uncertain("everybody")


@figure("traps.suspects")
def uncertain_of_suspects() -> str:
    """The same, for the records that a provider takes for neighbours of sentinels."""
    return _uncertain("suspects")


@figure("traps.unplanted")
def uncertain_of_unplanted() -> str:
    """The same, for what that search finds in the table without sentinels."""
    return _uncertain("unplanted")


@figure("traps.beside")
def suspects_beside_sentinels() -> str:
    """Which share of the suspects lies beside a sentinel."""
    return percents(r["found"] for r in load("traps")["unsent"])


@figure("traps.clear")
def uncertain_beyond_density() -> str:
    """On how many data sets suspects are less certain than in the table without sentinels."""
    rows = load("traps")["unsent"]
    return f"{sum(r['suspects_less_low'] > 0 for r in rows)} of {len(rows)}"


def _gap(contrast: str, measure: str) -> Figure:
    """On how many data sets the first arm is better and worse, beyond the interval."""

    def counts() -> str:
        known = load("utility")["clustered"][contrast][measure].values()
        better, worse = sum(r["low"] > 0 for r in known), sum(r["high"] < 0 for r in known)
        return f"better on {better} and worse on {worse} of {len(known)}"

    return counts


# Target-driven trees beside blind ones, then our rule beside the paper's system.
figure("utility.f1")(_gap("blind", "f1"))
figure("utility.auc")(_gap("blind", "auc"))
figure("utility.distance")(_gap("blind", "distance"))
for _measure in ("ncp", "auc", "f1"):
    figure(f"utility.ours.{_measure}")(_gap("ours", _measure))
    figure(f"utility.auto.{_measure}")(_gap("ours, weighed", _measure))


@figure("utility.seeds")
def utility_seeds() -> str:
    """Over how many seeds utility was measured."""
    return str(len(load("utility")["seeds"]))


@figure("commands.compiling")
def commands_compiling() -> str:
    """How many seconds of the first run compiling takes."""
    return f"{load('bench-commands')['first']['of which compiling']:.0f} seconds"


@figure("studies.minutes")
def studies_minutes() -> str:
    """How long all studies took together, in minutes."""
    return f"{sum(load(name)['seconds'] for name in names()) / 60:.0f}"


DECIDING = ("commitment", "sentinels", "twins", "replay", "splits")


def _audit_ratio(job: str) -> str:
    """The layers that decide, with the submission, as a multiple of growing the tree."""
    found = load("bench-owner")["jobs"][job]
    layers = found["full"]["layers"]
    return f"{sum(layers[name] for name in DECIDING) / found['grow']:.2f}"


@figure("audit.ratio_small")
def audit_ratio_small() -> str:
    """What decides, as a multiple of growing the tree, at 10,000 records of 16 columns."""
    return _audit_ratio("10000x16")


@figure("audit.ratio_million")
def audit_ratio_million() -> str:
    """The same at 1,000,000 records."""
    return _audit_ratio("1000000x16")


@figure("audit.ratio_large")
def audit_ratio_large() -> str:
    """The same at 10,000,000 records."""
    return _audit_ratio("10000000x16")


@figure("audit.of_again")
def audit_of_again() -> str:
    """What decides, as a multiple of all that the engine does, at 1,000,000 records."""
    found = load("bench-owner")["jobs"]["1000000x16"]
    layers = found["full"]["layers"]
    return f"{sum(layers[name] for name in DECIDING) / found['again']:.2f}"


@figure("audit.thin")
def audit_thin() -> str:
    """What decides without the submission, as a multiple of growing the tree."""
    found = load("bench-owner")["jobs"]["1000000x16"]
    layers = found["thin"]["layers"]
    return f"{sum(layers[name] for name in DECIDING) / found['grow']:.2f}"


@figure("audit.witnesses")
def audit_witnesses() -> str:
    """The time for the witnesses, as a multiple of growing the tree, at 1,000,000 records."""
    found = load("bench-owner")["jobs"]["1000000x16"]
    return f"{found['prepare_stages']['witnesses'] / found['grow']:.2f}"


@figure("audit.commitment")
def audit_commitment() -> str:
    """Which share of what decides is the layer that hashes, at 1,000,000 records."""
    layers = load("bench-owner")["jobs"]["1000000x16"]["full"]["layers"]
    return f"{100 * layers['commitment'] / sum(layers[name] for name in DECIDING):.0f} %"


@figure("audit.of_reexecution")
def audit_of_reexecution() -> str:
    """What decides, as a multiple of running the engine again with hashing; the paper's rule."""
    (at,) = (row for row in load("scale")["rows"] if (row["rows"], row["columns"]) == (10**6, 16))
    return f"{at['audit'] / at['reexecute']:.2f}"
