"""Check receipts and signed verdicts about a delivery, for third parties (spec §10).

The check needs neither the delivery nor a secret. A file may be hostile, so no more of it is read
than a valid one may hold.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import TypeVar

from verix_anon.errors import ReceiptError, TableError
from verix_anon.fields import Fields
from verix_anon.files.job_folder import DELIVERY_HEADER
from verix_anon.files.proofs import digest_bytes
from verix_anon.files.store import beginning, reason, small_file
from verix_anon.files.trust import Trust, trust_in
from verix_anon.protocol.envelopes import MAX_BYTES, keyids_of, open_envelope
from verix_anon.protocol.signing import VERDICT_FILE, Judgement
from verix_anon.protocol.statements import Receipt

Said = TypeVar("Said", Receipt, Judgement)


@dataclass(slots=True)
class Attested:
    """What the check showed, the problems it found, and what it cannot show."""

    receipt: Receipt | None = None
    verdict: Judgement | None = None
    shown: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)

    @property
    def is_so(self) -> bool:
        """Whether everything that was asked is true."""
        return self.receipt is not None and not self.problems

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values."""
        return {
            "ok": self.is_so,
            "receipt": _plain(self.receipt),
            "verdict": _plain(self.verdict),
            "shown": self.shown,
            "problems": self.problems,
            "not_shown": self.not_shown,
        }


def attested(
    receipt: Path,
    keys: Sequence[Path],
    *,
    verdict: Path | None = None,
    owner_keys: Sequence[Path] = (),
    root: str | None = None,
    files: Mapping[str, Path] | None = None,
) -> Attested:
    """Check a receipt, perhaps a verdict, and that they are about this root and these files.

    Signatures are checked first, and then what was signed; raises TableError if files cannot be
    read.
    """
    found, files = Attested(), files or {}
    found.receipt, holder = _signed(receipt, trust_in(keys), Receipt, "receipt", found)
    if (said := found.receipt) is not None:
        maker = f"{said.engine} {said.version}".strip() or "an unnamed engine"
        found.shown.append(
            f"The holder of {holder} signed that {maker} made the delivery with the root"
            f" {said.root.hex()} of the submission {said.submission.hex()} under the contract"
            f" {said.contract.hex()}: {said.rows:,} records in {said.leaves:,} leaves,"
            f" from {said.began} to {said.finished} by its own clock."
        )
    if verdict is not None:
        trust = trust_in(owner_keys)
        found.verdict, holder = _signed(verdict, trust, Judgement, "verdict", found)
        if (judged := found.verdict) is not None:
            decided = [f"{each.layer} {each.status}" for each in judged.findings if each.decides]
            found.shown.append(
                f"The holder of {holder} signed that its verdict was {judged.outcome} (profile"
                f" {judged.profile}, verix-anon {judged.version}, {judged.time} by its own"
                f" clock), decided by: {', '.join(decided) or 'nothing'}."
            )
    if found.receipt is not None and found.verdict is not None:
        _compare(found.receipt, found.verdict, found)
    if root is not None:
        _compare_root(root, found)
    for name, path in files.items():
        _compare_file(name, path, found)
    found.not_shown += _left_open(files, found)
    return found


def _signed(
    path: Path, trust: Trust, kind: type[Said], what: str, found: Attested
) -> tuple[Said | None, str]:
    """Return what a trusted key has signed, and whose key; otherwise note why it does not count."""
    data, now = beginning(path, MAX_BYTES + 1, what), datetime.now(UTC)
    try:
        opened = open_envelope(data, trust.counting(now), str(path))
    except ReceiptError as error:
        found.problems.append(f"{error}.")
        with suppress(ReceiptError):
            refusals = ((keyid, trust.refusal(keyid, now)) for keyid in keyids_of(data, str(path)))
            found.problems += [f"The key {keyid} {why}." for keyid, why in refusals if why]
        return None, ""
    try:
        said = kind.from_bytes(opened.payload, str(path))
    except ReceiptError as error:
        found.problems.append(f"A key that counts has signed it, but it is not a {what}: {error}.")
        return None, ""
    named = [(key.keyid, trust.name_of(key.keyid)) for key in opened.keys]
    return said, " and ".join(f"the key {k}{f' ({name})' if name else ''}" for k, name in named)


def _compare(receipt: Receipt, verdict: Judgement, found: Attested) -> None:
    names = ("root", "files", "contract", "submission")
    differing = [name for name in names if getattr(receipt, name) != getattr(verdict, name)]
    if differing:
        found.problems.append(
            f"The verdict is on another delivery than the receipt: another {', '.join(differing)}."
        )
    else:
        found.shown.append("Receipt and verdict are about the same files and the same root.")


def _compare_root(root: str, found: Attested) -> None:
    wanted = digest_bytes(root, "a root")
    if found.receipt is None:
        return
    if found.receipt.root == wanted:
        found.shown.append("The root is the one that was asked about.")
    else:
        found.problems.append("The receipt is about another root than the one asked about.")


def _compare_file(name: str, path: Path, found: Attested) -> None:
    digest = _digest(path)
    who, signed = "receipt", dict(found.receipt.files) if found.receipt is not None else {}
    if name == VERDICT_FILE and found.verdict is not None:
        who, signed = "signed verdict", {name: found.verdict.verdict}
    if name not in signed:
        found.problems.append(f"Nothing that was signed names a file {name}.")
    elif signed[name] == digest:
        found.shown.append(f"{path} is the {name} that the {who} names.")
        if name == DELIVERY_HEADER and found.receipt is not None:
            _compare_header(path, found.receipt, found)
    else:
        found.problems.append(f"{path} is not the {name} that the {who} names.")


def _compare_header(path: Path, receipt: Receipt, found: Attested) -> None:
    """Note a problem if receipt and delivery.json differ: then the signer contradicts itself."""
    try:
        said = Fields.parse(small_file(path, MAX_BYTES, "delivery.json"), str(path), TableError)
        names = ("root", "contract", "submission")
        differing = [name for name in names if said.digest(name) != getattr(receipt, name)]
    except TableError as error:
        differing = [f"form ({error})"]
    if differing:
        found.problems.append(
            f"{path} and the receipt are of one signer and contradict each other: another"
            f" {', '.join(differing)}."
        )


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the parts of records.parquet as a folder (spec §8.3)."""
    try:
        if path.is_dir():
            from verix_anon.files.folder_writer import digests_of_folder

            return digests_of_folder(path.parent, [path.name])[path.name]
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TableError(f"{path} cannot be read ({reason(error)})") from None


def _left_open(compared: Mapping[str, Path], found: Attested) -> list[str]:
    """Say what the check cannot show even if it finds no problem."""
    others = [] if found.receipt is None else sorted(set(found.receipt.files) - set(compared))
    right = "whether the work is right: a receipt says whose it is"
    if found.verdict is not None:
        right = (
            "whether the work is right, except by the owner's word: anyone who has delivery,"
            " submission and manifest can judge it again"
        )
    points = [
        right,
        "when anything was done: times are the claims of who signed them",
        "who holds the keys: ask in another way, for example by telephone",
        "what any record says, or whether a release made of it is safe to publish",
    ]
    if others:
        points.append(f"that you have the files, which were not compared: {', '.join(others)}")
    return [f"{point[0].upper()}{point[1:]}." for point in points]


def _plain(said: Receipt | Judgement | None) -> dict[str, object] | None:
    if said is None:
        return None
    return {name: v.hex() if isinstance(v, bytes) else v for name, v in asdict(said).items()}
