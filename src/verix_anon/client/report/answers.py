"""The three answers at the top: was it done as agreed, how sure is that, what to tell others."""

from collections.abc import Mapping
from dataclasses import dataclass

from verix_anon.client.parties import Parties
from verix_anon.client.report.about import counted
from verix_anon.client.report.left_open import LeftOpen
from verix_anon.client.report.reading import Reading, clean
from verix_anon.client.report.sheet import SheetView
from verix_anon.client.verdict import RECEIPT, Finding, Outcome, Profile, Status, Verdict
from verix_anon.errors import TableError
from verix_anon.fields import Fields

__all__ = ["Answers", "answers", "reading_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    headline: str
    done: str
    sure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(_Said):
    """What somebody who reads ten lines should know."""

    statement: tuple[str, ...]


def reading_of(finding: Finding) -> Reading:
    """The evidence of a finding."""
    return Reading(Fields(finding.evidence, f"the layer {clean(finding.layer)}", TableError))


def answers(
    verdict: Verdict,
    summaries: Mapping[str, str],
    sheet: SheetView | None,
    left: LeftOpen,
) -> Answers:
    """The answers that the findings give, in words; `summaries` are those that may be shown."""
    open_ = {f.layer for f in verdict.findings if f.decides and f.status is not Status.PASS}
    if open_ == {RECEIPT}:
        said = _unsigned(verdict, summaries[RECEIPT])
    elif verdict.outcome is Outcome.VERIFIED:
        said = _verified(verdict)
    elif verdict.outcome is Outcome.VIOLATION:
        said = _violation(verdict, summaries)
    else:
        said = _inconclusive(verdict)
    return Answers(
        headline=said.headline,
        done=said.done,
        sure=said.sure,
        statement=_statement(verdict, said, sheet, left),
    )


def _is_sample(verdict: Verdict) -> bool:
    splits = reading_of(verdict.finding("splits"))
    examined = splits.count("examined")
    # What a verdict does not say was looked at was not.
    return examined is None or examined != splits.count("nodes")


def _verified(verdict: Verdict) -> _Said:
    if verdict.profile is Profile.PAPER:
        return _Said(
            headline="The delivery passed the checks of the paper.",
            done="It passed every check of the profile “paper”. These checks do not look at every"
            " record, nor at the rule that was applied.",
            sure="Less sure than can be had. Planted records can be recognized, and the model's"
            " fingerprint has a measured rate of error. Verify with the submission at hand for"
            " an exact answer.",
        )
    splits = clean(verdict.finding("splits").guarantee, 400)
    if verdict.profile is Profile.THIN:
        return _Said(
            headline="The work was done as agreed, as far as we could check without the data that"
            " was sent.",
            done="Yes, as far as was checked. Every record came back once, with its own label."
            " Groups and rule were checked for a secret selection of records.",
            sure="That no record is missing, doubled or exchanged is exact. For the rest:"
            f" {splits}",
        )
    if _is_sample(verdict):
        return _Said(
            headline="The work was done as agreed, as far as a random sample of its steps shows.",
            done="Yes. Every record came back once, in the right group, with true bounds. The rule"
            " was checked at steps drawn at random.",
            sure=f"Records, groups and bounds: exact. The rule: {splits}",
        )
    return _Said(
        headline="The work was done as agreed.",
        done="Yes. Every record that was sent came back once, in the group that the agreed rule"
        " puts it in, with true bounds. The delivery is the one that honest work gives, to the"
        " last bit.",
        sure="As sure as the hash function SHA-256. Every record and every step of the rule was"
        " checked; there is no sampling and no chance of error.",
    )


def _violation(verdict: Verdict, summaries: Mapping[str, str]) -> _Said:
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
    return _Said(
        headline="The work was not done as agreed.",
        done=f"No. Of the {n_deciding} checks that decide, {len(failed)} failed. {reasons}",
        sure=sure,
    )


def _unsigned(verdict: Verdict, summary: str) -> _Said:
    """Everything that decides passed but the receipt: whose work it is, not what it is worth."""
    work = f"The checks of the work itself passed. {summary}"
    if verdict.outcome is Outcome.VIOLATION:
        return _Said(
            headline="The provider's receipt is not one for these files.",
            done=f"Not as agreed: {work}",
            sure="Certain that this receipt does not cover these files. A damaged or mixed-up"
            " transfer is one reason; rule it out before you accuse anybody.",
        )
    return _Said(
        headline="It is not shown that the provider answers for these files.",
        done=f"As far as was checked, but without the signature that was agreed. {work}",
        sure="Not sure enough to accept it. Once the receipt is there, or the provider's new key"
        " is pinned, verify again.",
    )


def _inconclusive(verdict: Verdict) -> _Said:
    layers = [f.layer for f in verdict.findings if f.decides and f.status is not Status.PASS]
    return _Said(
        headline="It is not shown that the work was done as agreed.",
        done="Unknown. Nothing deviated, but a check that decides could not be run:"
        f" {', '.join(layers)}.",
        sure="Not sure enough to accept it. Verify again with the submission at hand.",
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
    verdict: Verdict, said: _Said, sheet: SheetView | None, left: LeftOpen
) -> tuple[str, ...]:
    done = (
        f"{_audited(verdict)}, with verix-anon {clean(verdict.version)} (profile"
        f" {verdict.profile.value}). The outcome is {verdict.outcome.value}."
    )
    if sheet is None:
        released = [f"{ACTIONS[verdict.outcome]} {NOT_TOLD}"]
    else:
        points = "; ".join(str(point) for point in left.points)
        released = [_released(sheet), f"What the release leaves open: {points}."]
    return (
        done,
        f"Was the work done as agreed? {said.done}",
        f"How sure is that? {said.sure}",
        *released,
        KEPT,
    )


def _audited(verdict: Verdict) -> str:
    """When we audited which table, of how many records, by whom."""
    first, account = reading_of(verdict.finding("commitment")), verdict.account
    parties = Parties() if account is None else account.parties
    records, k = first.count("records"), first.count("k")
    of = "" if records is None else f" of {records:,} records, traps among them,"
    if account is not None:
        name = clean(parties.table_name, 200)
        of = f" of {f'“{name}”' if name else 'a table'} ({counted(account)})"
    with_k = "" if k is None else f" with k = {k:,}"
    we = f"we, {clean(parties.controller, 200)}," if parties.controller else "we"
    when = f"On {clean(verdict.time)[:10]} {we}" if verdict.time else f"W{we[1:]}"
    processor = clean(parties.processor, 200) or "a processor"
    return f"{when} audited the anonymization{of}{with_k} that {processor} did for us"


def _released(sheet: SheetView) -> str:
    forced = ", against the verdict or the ledger" if sheet.overridden else ""
    return (
        f"A table was released{forced}: every class holds at least {sheet.k:,} ({sheet.k_agreed:,}"
        " agreed), so that whoever knows the quasi-identifiers of somebody and nothing else picks"
        f" the right record with a chance of at most {sheet.risk_max:.1%}."
    )
