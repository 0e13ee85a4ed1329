"""What the studies of detection found, beside the paper's tables; computes nothing but counts."""

from collections.abc import Iterator

from experiments.core.cells import Result
from experiments.core.markdown import (
    HOLDS,
    HOLDS_CHANGED,
    NOT,
    Claim,
    mark,
    percent,
    prose,
    rate,
    section,
    table,
    verdict,
)
from experiments.data import TITLES
from experiments.studies.contracts.render import by_contract
from experiments.studies.detection import published
from experiments.studies.detection.study import APPROACHES, epsilons, outcome

__all__ = ["BESIDE", "beside", "claims", "page", "summary"]

BESIDE = "contracts"

LAYERS = {"L1": "commitment", "L2a": "sentinels", "L2b": "twins"}
HOW = """One sample of 8,000 rows per data set (fewer in a quick run), seed 42, k = 5, the paper's
        traps, commitment and thresholds. 'Calibrated' is the rule of the paper's text, 1.1 times
        the honest maximum of one local run, here on all genuine records (the paper: a small
        sample). The paper's table takes 1.1 times the honest maximum of the very run it then
        judges; the row 'circular' does the same."""
NO_ROOT_MATCHES = prose(
    """These cannot match: the paper's code is not public, its samples are drawn by another
        generator, and a sentinel is a random record."""
)
MAIN = ("paper, epsilon 0.45", "paper, calibrated", "thin", "full")


def page(found: Result) -> list[str]:
    """The paper's §6.2, §6.3 and appendices C to E, ours beside them; then what it left open."""
    single = found["single_run"]
    title = "Detection: the paper's single run (its §6.2, §6.3, appendices C to E)"
    body = [
        *_performance(single),
        *_matrix(single),
        *_traps(found),
        *_distances(single),
        *_features(single),
        *_baselines(single),
        *_roots(single),
        *_many(found),
    ]
    return section(title, found, HOW, body)


def _cells(single: Result, rule: str) -> Iterator[tuple[str, str, bool]]:
    """(data, profile, flagged) of every scenario."""
    for data, run in single.items():
        for profile in published.PROFILES:
            yield data, profile, outcome(run["providers"][profile], rule, epsilons(run))


def _performance(single: Result) -> list[str]:
    rows = []
    for rule in ("fixed", "calibrated", "circular"):
        cells = list(_cells(single, rule))
        alarms = sum(flagged for _, p, flagged in cells if p == "honest")
        misses = sum(not flagged for _, p, flagged in cells if p != "honest")
        n_honest, n_all = len(single), len(cells)
        hits = n_all - n_honest - misses
        paper = published.PERFORMANCE.get(rule if rule != "circular" else "calibrated")
        assert paper is not None
        precision = hits / (hits + alarms) if hits + alarms else 0.0
        rows.append(
            [
                rule,
                f"{paper[0]}/28",
                f"{n_all - alarms - misses}/{n_all}",
                f"{paper[1]:.2f} / {precision:.2f}",
                f"{paper[2]:.2f} / {hits / (n_all - n_honest):.2f}",
                f"{paper[3]:.2f} / {1 - alarms / n_honest:.2f}",
                f"{paper[4]} / {alarms}",
                f"{paper[5]} / {misses}",
            ]
        )
    head = ["threshold", "paper", "ours", "precision", "recall", "specificity"]
    return [
        "## Performance over the scenarios (tab:detection_perf)",
        "",
        *table([*head, "false alarms", "misses"], rows),
        "In the last five columns the paper's figure stands first.",
        "",
    ]


def _matrix(single: Result) -> list[str]:
    rows = []
    for data, run in single.items():
        epsilon = epsilons(run)
        for profile in published.PROFILES:
            said = run["providers"][profile]
            flags = {name: said["paper"][layer] == "fail" for name, layer in LAYERS.items()}
            flags["L3"] = any(d > epsilon["calibrated"] for d in said["distance"])
            flags["overall"] = any(flags.values())
            row = [TITLES[data], profile]
            for name, flagged in flags.items():
                paper = published.is_correct(name, profile, data)
                row.append(f"{mark(paper)} {mark(flagged is (profile != 'honest'))}")
            rows.append(row)
    return [
        "## Every scenario by layer, calibrated (tab:detection_full)",
        "",
        "A check mark: the layer passed an honest provider or caught a cheater. Paper, then ours.",
        "",
        *table(["data set", "provider", "L1", "L2a", "L2b", "L3", "overall"], rows, left=2),
    ]


def _traps(found: Result) -> list[str]:
    rows = []
    for row in found["trap_counts"]:
        paper = published.TRAPS[row["data"]]
        rows.append(
            [
                TITLES[row["data"]],
                f"{paper[0]:,} / {row['boundary']:,}",
                f"{row['boundary_least']:,} to {row['boundary_most']:,}",
                f"{paper[1]} / {row['sentinels']}",
                f"{paper[2]} / {row['twins']}",
                f"{paper[3]:,} / {row['outsourced']:,}",
                f"{row['evasion']:.2g}",
                f"{row['sentinels_today']}, {row['evasion_today']:.2g}",
            ]
        )
    head = ["data set", "boundary points", "over all seeds", "sentinels", "twins", "outsourced"]
    return [
        "## Traps (tab:trap_injection)",
        "",
        *table([*head, "evasion at 5 %", "adaptive: sentinels, evasion"], rows),
        "The paper's figure stands first.",
        "",
    ]


def _distances(single: Result) -> list[str]:
    rows = []
    for data, run in single.items():
        epsilon = epsilons(run)
        paper = [max(d[i] for d in published.DISTANCES[data].values()) for i in range(3)]
        ours = [max(run["providers"][p]["distance"]) for p in published.PROFILES[:3]]
        caught = [
            rule
            for rule in ("fixed", "calibrated", "circular")
            if outcome(run["providers"]["approximate"], rule, epsilon)
        ]
        rows.append(
            [
                TITLES[data],
                *(f"{p:.3f} / {o:.3f}" for p, o in zip(paper, ours, strict=True)),
                f"{1.1 * paper[0]:.3f} / {epsilon['calibrated']:.3f}",
                f"{epsilon['circular']:.3f}",
                ", ".join(caught) or "none",
            ]
        )
    head = ["data set", "honest", "lazy", "dumb, approximate", "calibrated epsilon", "circular"]
    return [
        "## Greatest SHAP distance of the top features (tab:per_feature_wd)",
        "",
        *table([*head, "approximate caught by"], rows),
        "The paper's figure stands first. Its fixed epsilon is 0.45.",
        "",
    ]


def _features(single: Result) -> list[str]:
    rows = []
    for data, run in single.items():
        said = [run["providers"][p]["distance"] for p in published.PROFILES[:3]]
        ours = {name: [d[i] for d in said] for i, name in enumerate(run["features"])}
        paper = published.DISTANCES[data]
        for name in dict.fromkeys([*paper, *ours]):
            cells = []
            for i in range(3):
                left = f"{paper[name][i]:.3f}" if name in paper else "-"
                right = f"{ours[name][i]:.3f}" if name in ours else "-"
                cells.append(f"{left} / {right}")
            rows.append([TITLES[data], f"`{name}`", *cells])
    return [
        "## By feature (tab:per_feature_full)",
        "",
        "A dash: not among the top three features there.",
        "",
        *table(["data set", "feature", "honest", "lazy", "dumb, approximate"], rows, left=2),
    ]


def _baselines(single: Result) -> list[str]:
    rows = []
    for name in APPROACHES:
        paper = published.BASELINES.get(name)
        right = f"{_right(single, name)}/{4 * len(single)}"
        rows.append([name, "-" if paper is None else f"{paper}/28", right])
    return [
        "## Approaches alone and combined (tab:baseline_comparison)",
        "",
        *table(["approach", "paper", "ours"], rows),
    ]


def _right(single: Result, approach: str) -> int:
    """How many scenarios of the single run an approach judges right."""
    return sum(
        APPROACHES[approach](run["providers"][profile], run["calibrated"]) is (profile != "honest")
        for run in single.values()
        for profile in published.PROFILES
    )


def _roots(single: Result) -> list[str]:
    rows = [
        [
            TITLES[data],
            *(f"`{root}`" for root in published.ROOTS[data]),
            *(f"`{run['providers'][p]['root']}`" for p in ("honest", "dumb", "approximate")),
        ]
        for data, run in single.items()
    ]
    head = ["data set", "paper: honest", "dumb", "approximate", "ours: honest", "dumb"]
    return [
        "## Roots (tab:hashes)",
        "",
        NO_ROOT_MATCHES,
        "",
        *table([*head, "approximate"], rows),
    ]


def _many(found: Result) -> list[str]:
    rates = {(r["provider"], r["approach"], r["data"]): r for r in found["rows"]}
    providers = list(dict.fromkeys(r["provider"] for r in found["rows"]))
    names = list(dict.fromkeys(r["data"] for r in found["rows"] if r["data"] != "all"))
    lines = [
        "## Detection with many seeds and adversaries that know the protocol",
        "",
        prose(
            f"""{found["seeds"]} seeds per data set, all data sets together: flagged of runs, with
            the Wilson 95 % interval. For `honest` every flag is a false alarm."""
        ),
        "",
        *table(
            ["provider", *MAIN],
            [[p, *(rate(rates[p, a, "all"]) for a in MAIN)] for p in providers],
        ),
        "The paper's adversaries under the paper's profile, calibrated, by data set:",
        "",
        *table(
            ["data set", *published.PROFILES],
            [
                [
                    TITLES[n],
                    *(rate(rates[p, "paper, calibrated", n]) for p in published.PROFILES),
                ]
                for n in names
            ],
        ),
        "Approaches alone and combined, flagged of runs:",
        "",
    ]
    alone = [a for a in dict.fromkeys(r["approach"] for r in found["rows"]) if a not in MAIN]
    rows = [[p, *(percent(rates[p, a, "all"]["rate"], 0) for a in alone)] for p in providers]
    lines += table(["provider", *alone], rows)
    lines += [
        prose(
            """`half-k` and `leaf-k` may have more leaves than the records allow. Such a delivery is
            refused when it is read, which counts as layer 1 here; the paper's hash alone would not
            see it."""
        ),
        "",
    ]
    return [*lines, *_by_layer(found), *_sole(found)]


def _by_layer(found: Result) -> list[str]:
    layers = list(dict.fromkeys(r["layer"] for r in found["layers"]))
    share = {
        (r["provider"], r["profile"], r["layer"]): r["failed"] / r["runs"] for r in found["layers"]
    }
    providers = dict.fromkeys(r["provider"] for r in found["layers"])
    lines = []
    for profile in ("full", "thin"):
        rows = [[p, *(percent(share[p, profile, n], 0) for n in layers)] for p in providers]
        lines += [f"Share of the runs in which each layer of `{profile}` failed:", ""]
        lines += table(["provider", *layers], rows)
    return lines


def _sole(found: Result) -> list[str]:
    rows = [[r["provider"], r["profile"], r["layer"], r["runs"]] for r in found["sole"]]
    return [
        "Where one layer alone caught a provider, and in how many runs:",
        "",
        *table(["provider", "profile", "layer", "runs"], rows, left=3),
    ]


def beside(contracts: Result) -> list[str]:
    """Both rules and both weightings, from the study that has all contracts."""
    text = f"""Everything above is under the paper's rule, with columns in clear. From the study
        [contracts](contracts.md): coded submissions under the paper's rule, and under
        `importance-spread` with equal weights and with those of a model. Samples of
        {contracts["rows_each"]:,} rows, {contracts["seeds"]} seeds. A delivery counts where it is
        not the honest one. The paper's profile needs columns in clear, so it is not among them."""
    return ["## Both rules and both weightings", "", prose(text), "", *by_contract(contracts)]


def claims(found: Result) -> list[Claim]:
    """Its headlines on detection."""
    return [*_scenarios(found), *_by_itself(found), _structure(found), _informed(found)]


def _scenarios(found: Result) -> list[Claim]:
    """The 28 scenarios, the false alarms and the SHAP values, by both ways to set the threshold."""
    single, seeds = found["single_run"], found["seeds"]
    n, rules = 4 * len(single), ("calibrated", "circular")
    right, as_table = (_correct(single, rule) for rule in rules)
    fixed = _correct(single, "fixed")
    seen, seen_as_table = (_flagged(single, rule, "approximate") for rule in rules)
    alarms_as_table = _flagged(single, "circular", "honest")
    honest, blind = (_pooled(found, p, "paper, calibrated") for p in ("honest", "approximate"))
    return [
        Claim(
            "27 of 28 scenarios are judged right with a calibrated threshold",
            verdict([right >= 27, as_table >= 27]),
            f"""{right} of {n} by the rule of its text, {as_table} with the threshold set from the
            judged run, as its table has it""",
        ),
        Claim(
            "25 of 28 are judged right with the fixed threshold",
            verdict([fixed >= 25]),
            f"{fixed} of {n}",
        ),
        Claim(
            "There are no false alarms with a calibrated threshold",
            NOT if honest["flagged"] else HOLDS,
            f"""{_said(honest)} honest runs are accused over {seeds} seeds (95 % interval
            {percent(honest["low"], 0)} to {percent(honest["high"], 0)}); {alarms_as_table} of
            {len(single)} if epsilon is set from the judged run, where none can occur""",
        ),
        Claim(
            "SHAP values catch the approximate provider on 6 of 7 data sets",
            verdict([seen >= 6, seen_as_table >= 6]),
            f"""on {seen} of {len(single)} in one run ({seen_as_table} of {len(single)} as its table
            has it); in {_said(blind)} runs over {seeds} seeds""",
        ),
    ]


def _flagged(single: Result, rule: str, provider: str) -> int:
    """On how many data sets the paper's profile flags a provider in the single run."""
    return sum(flagged for _, p, flagged in _cells(single, rule) if p == provider)


ALONE = ("hash only (paper's layer 1)", "traps only (2a + 2b)", "SHAP only, calibrated")


def _by_itself(found: Result) -> list[Claim]:
    """What each layer does alone, and twins where sentinels are few."""
    single = found["single_run"]
    n = 4 * len(single)
    best = max(_right(single, name) for name in ALONE)
    together = _right(single, "paper, calibrated")
    caught = {
        layer: sum(run["providers"]["lazy"]["paper"][layer] == "fail" for run in single.values())
        for layer in ("sentinels", "twins")
    }
    lazy = _pooled(found, "lazy", "traps only (2a + 2b)")
    always = caught["twins"] == len(single) and lazy["flagged"] == lazy["runs"]
    return [
        Claim(
            "No single layer suffices: the best is right in 23 of 28, all together in 27",
            HOLDS if best < together else NOT,
            f"the best is right in {best} of {n}, all together in {together}",
        ),
        Claim(
            "Twins make up for sentinels where few records lie at the boundary",
            HOLDS if always else NOT,
            f"""sentinels catch the lazy provider on {caught["sentinels"]} of {len(single)} data
            sets, twins on {caught["twins"]}; one or the other in {_said(lazy)} runs""",
        ),
    ]


def _structure(found: Result) -> Claim:
    """Layer 1, and what `full` has in place of SHAP."""
    dumb, blind = (_pooled(found, p, ALONE[0]) for p in ("dumb", "approximate"))
    ours = [r for r in found["rows"] if (r["approach"], r["data"]) == ("full", "all")]
    caught, runs = (
        sum(r[count] for r in ours if r["provider"] != "honest") for count in ("flagged", "runs")
    )
    alarms = _pooled(found, "honest", "full")
    is_hash_enough = all(r["flagged"] == r["runs"] for r in (dumb, blind))
    is_full_enough = caught == runs and not alarms["flagged"]
    return Claim(
        'Layer 1 "detects any structural change with probability 1"',
        HOLDS if is_hash_enough else HOLDS_CHANGED if is_full_enough else NOT,
        f"""its hash catches a blind tree under a false root in {_said(dumb)} runs, and under its
        own root in {blind["flagged"]}, as the paper says itself; `full`, where replay and splits
        stand in place of SHAP, catches {caught:,} of {runs:,} deliveries of {len(ours) - 1}
        adversaries""",
    )


def _informed(found: Result) -> Claim:
    """A provider that knows of the traps, keeps them, and drops other records."""
    who = ("informed", "informed-40")
    few, many = (_pooled(found, p, "paper, calibrated") for p in who)
    by_traps = sum(_pooled(found, p, ALONE[1])["flagged"] for p in who)
    honest = _pooled(found, "honest", "paper, calibrated")
    ours = [_pooled(found, p, profile) for p in who for profile in ("full", "thin")]
    all_of, all_of_ours = (all(r["flagged"] == r["runs"] for r in g) for g in ((few, many), ours))
    return Claim(
        "An informed attacker that defeats the traps is still caught by layers 1 and 3",
        HOLDS if all_of else HOLDS_CHANGED if all_of_ours else NOT,
        f"""dropping 5 % of the records it is caught in {_said(few)} runs, dropping 40 % in
        {_said(many)} (by traps in {by_traps}; honest runs are accused in {honest["flagged"]}); by
        `thin` and `full` in {min(r["flagged"] for r in ours)} of {ours[0]["runs"]} each""",
    )


def _pooled(found: Result, provider: str, approach: str) -> Result:
    """How often an approach flags a provider, all data sets together."""
    row: Result = next(
        r
        for r in found["rows"]
        if (r["provider"], r["approach"], r["data"]) == (provider, approach, "all")
    )
    return row


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    single = found["single_run"]
    n = 4 * len(single)
    rate = {(r["provider"], r["approach"], r["data"]): r for r in found["rows"]}
    names = list(single)

    def all_of(provider: str, approach: str) -> Result:
        row: Result = rate[provider, approach, "all"]
        return row

    alarms = [rate["honest", "paper, calibrated", d]["rate"] for d in names]
    caught = [rate["approximate", "paper, calibrated", d]["rate"] for d in names]
    honest = all_of("honest", "paper, calibrated")
    return [
        f"""**The paper's headline, 27 of 28 with a calibrated threshold:** our single run gives
        {_correct(single, "calibrated")} of {n} with the rule of its text,
        {_correct(single, "circular")} of {n} with the threshold set from the very run that is
        judged, as its table has it, and {_correct(single, "fixed")} of {n} with the fixed one
        (paper: 25).""",
        f"""**How much of it is one draw:** over {found["seeds"]} seeds the calibrated threshold
        accuses an honest provider in {honest["flagged"]} of {honest["runs"]} runs
        ({percent(min(alarms), 0)} to {percent(max(alarms), 0)} by data set) and catches the
        approximate one in {percent(min(caught), 0)} to {percent(max(caught), 0)}. "No false alarms"
        {"does not reproduce" if honest["flagged"] else "reproduces"}.""",
        f"""**The paper's other layers:** layer 1 catches the dumb provider in
        {_said(all_of("dumb", "hash only (paper's layer 1)"))} runs, sentinels and twins the lazy
        one in {_said(all_of("lazy", "traps only (2a + 2b)"))}, and all of them together the
        approximate one in {_said(all_of("approximate", "layers 1 + 2"))} (paper: 7 of 7, 7 of 7, 0
        of 7).""",
        *_profiles(found, all_of("honest", "full"), all_of("honest", "thin")),
    ]


def _correct(single: Result, rule: str) -> int:
    return sum(flagged is (p != "honest") for _, p, flagged in _cells(single, rule))


def _profiles(found: Result, full: Result, thin: Result) -> list[str]:
    """What `full` and `thin` caught, and what got through."""
    providers = [p for p in dict.fromkeys(r["provider"] for r in found["rows"]) if p != "honest"]
    missed: dict[str, list[str]] = {"full": [], "thin": []}
    for r in found["rows"]:
        through = r["runs"] - r["flagged"]
        if r["data"] == "all" and r["approach"] in missed and r["provider"] != "honest" and through:
            missed[r["approach"]].append(f"{r['provider']} (missed in {through} of {r['runs']})")
    sentences = []
    for profile, honest in (("full", full), ("thin", thin)):
        through = "all were caught in every run"
        if missed[profile]:
            through += f", except {'; '.join(missed[profile])}"
        sentences.append(
            f"""**Profile `{profile}`:** {honest["flagged"]} false alarms in {honest["runs"]} honest
            runs (the 95 % interval ends at {percent(honest["high"])}); of {len(providers)}
            adversaries, each run {honest["runs"]} times, {through}."""
        )
    return sentences


def _said(row: Result) -> str:
    return f"{row['flagged']} of {row['runs']}"
