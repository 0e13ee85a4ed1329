"""What verification found: findings of the layers, and their conjunction (spec §10).

It names layers and what they found, and no evidence: that may tell what was planted.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from verix_anon.client.audit_subject import Account
from verix_anon.client.notebook import as_table
from verix_anon.fields import odds, to_json
from verix_anon.protocol.contract import Digest

FORMAT = "verix/verdict/2"

SHARE = 0.05
"""The share of records that a provider is assumed to touch, where one example must do."""

Evidence = Mapping[str, object]
"""Counts and worst cases as JSON values; never the value of an individual."""


class Status(StrEnum):
    """What one layer found."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """The verdict in one word."""

    VERIFIED = "VERIFIED"
    VIOLATION = "VIOLATION"
    INCONCLUSIVE = "INCONCLUSIVE"


class Profile(StrEnum):
    """Which layers decide (spec §9).

    Examples:
        >>> thin = verix_anon.Profile("thin")
    """

    FULL = "full"
    THIN = "thin"
    PAPER = "paper"


MEASURES = {
    "f1": "F1 {:.3f}",
    "macro_f1": "macro F1 {:.3f}",
    "auc": "AUC {:.3f}",
    "r2": "R2 {:.3f}",
    "mean_absolute_error": "mean absolute error {:.4g}",
}
"""What `utility` measures, by task, and how it is shown."""
RECEIPT = "receipt"
"""The layer that decides in every profile, if a key of the provider's is pinned, and else rests."""
EXACT_LAYERS = ("commitment", "sentinels", "twins", "replay", "splits")
LAYERS = (*EXACT_LAYERS, "fingerprint", "utility", RECEIPT)
EXACT = frozenset(EXACT_LAYERS)
DECIDING = {
    Profile.FULL: EXACT,
    Profile.THIN: EXACT,
    Profile.PAPER: frozenset({"commitment", "sentinels", "twins", "fingerprint"}),
}
"""Which layers decide in each profile, whatever is pinned."""
INFORMING = {
    profile: frozenset(LAYERS) - EXACT - DECIDING[profile] - {RECEIPT} for profile in Profile
}
"""Which layers only inform; of the paper's profile the exact ones that it lacks are not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one layer found, on what evidence, and what that guarantees.

    Examples:
        >>> finding = verix_anon.read_verdict("job/verdict.json").finding("replay")
    """

    layer: str
    status: Status
    decides: bool = True
    summary: str
    guarantee: str = ""
    evidence: Evidence = field(default_factory=dict, repr=False)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What every layer found about one delivery, identified by its root and its files.

    Examples:
        >>> verdict = verix_anon.verify("job/delivery", "job/manifest.verix")
        >>> bool(verdict)
        True
    """

    profile: Profile
    root: Digest
    files: Mapping[str, str]
    """SHA-256 of every file that was judged."""
    contract: Digest
    submission: Digest
    findings: tuple[Finding, ...]
    account: Account | None = None
    """What was submitted; None in verdicts from before this was kept."""
    unsafe_seed: bool = False
    version: str = ""
    time: str = ""
    """When it was judged, in UTC; empty in verdicts from before this was kept."""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    """What the audit log and the ledger cannot vouch for; no finding rests on them."""

    @property
    def outcome(self) -> Outcome:
        """VERIFIED if some layer decides and every deciding layer passes."""
        deciding = [f.status for f in self.findings if f.decides]
        if Status.FAIL in deciding:
            return Outcome.VIOLATION
        if deciding and all(status is Status.PASS for status in deciding):
            return Outcome.VERIFIED
        return Outcome.INCONCLUSIVE

    @property
    def guarantee(self) -> str:
        """What a thin pass guarantees; under other profiles each finding says it itself."""
        if self.profile is not Profile.THIN or not self.accepted:
            return ""
        watch = self.finding("replay").evidence.get("watch")
        witnesses = self.finding("splits").evidence.get("witnesses")
        if not isinstance(watch, int) or not isinstance(witnesses, int):
            return ""
        return (
            f"Thin: if {SHARE:.0%} of the genuine records are in wrong leaves, the chance to miss"
            f" it is {odds((1 - SHARE) ** watch)}. If {SHARE:.0%} of their paths have wrong"
            f" splits, it is {odds((1 - SHARE) ** witnesses)}. Moved traps are not found."
        )

    @property
    def accepted(self) -> bool:
        """Whether the outcome is VERIFIED."""
        return self.outcome is Outcome.VERIFIED

    def __bool__(self) -> bool:
        # A dataclass is truthy by default: without this, `if verify(...)` would accept anything.
        return self.accepted

    def finding(self, layer: str) -> Finding:
        """The finding of one layer."""
        return {f.layer: f for f in self.findings}[layer]

    def to_json(self) -> str:
        """The verdict as JSON, with its outcome spelled out."""
        return to_json(
            {
                "format": FORMAT,
                "outcome": self.outcome.value,
                "profile": self.profile.value,
                "root": self.root.hex(),
                "files": dict(self.files),
                "contract": self.contract.hex(),
                "submission": self.submission.hex(),
                "account": None if self.account is None else asdict(self.account),
                "unsafe_seed": self.unsafe_seed,
                "version": self.version,
                "time": self.time,
                "seconds": self.seconds,
                "warnings": list(self.warnings),
                "findings": [asdict(finding) for finding in self.findings],
            }
        )

    def __repr__(self) -> str:
        open_ = [f for f in self.findings if f.decides and f.status is not Status.PASS]
        named = ", ".join(f"{f.layer} {f.status.value}" for f in open_)
        return (
            f"<Verdict {self.outcome.value}: profile {self.profile.value},"
            f" root {self.root.hex()[:16]}…{named and '; '}{named}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (f.layer, f.status.value, "decides" if f.decides else "informs", f.summary)
            for f in self.findings
        ]
        return (
            f"<p><strong>{self.outcome.value}</strong> (profile {self.profile.value},"
            f" root <code>{self.root.hex()[:16]}…</code>)</p>"
            + as_table(rows, ("layer", "status", "", "summary"))
        )
