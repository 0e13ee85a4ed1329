"""Whose signatures count: the keys that were pinned, and those that were revoked (spec §8.5).

A small file of the owner's. Several keys count at once, so that a provider can change its own; a
revoked one never counts again. Whether a key counts is decided by the checker's clock, because the
time in a receipt is the claim of the key's holder, and a thief would claim another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from verix_anon.errors import ReceiptError, TableError
from verix_anon.fields import Fields
from verix_anon.files.store import FilePath, small_file
from verix_anon.protocol.envelopes import PublicKey
from verix_anon.protocol.statements import as_time, to_time

FORMAT = "verix/keys/1"
MAX_BYTES = 1 << 20
MAX_KEY_BYTES = 1 << 14
PRIVATE = b"PRIVATE KEY-----"
MAX_TEXT = 200
TIMES = ("pinned", "not_before", "not_after", "revoked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A key that somebody decided about; times are those of the owner's clock."""

    key: PublicKey
    name: str = ""
    pinned: datetime | None = None
    not_before: datetime | None = None
    not_after: datetime | None = None
    revoked: datetime | None = None
    reason: str = ""
    """Why it was revoked"""

    def __post_init__(self) -> None:
        for text in (self.name, self.reason):
            if not text.isprintable() or len(text) > MAX_TEXT:
                raise TableError(
                    f"a key's name and reason are one line of at most {MAX_TEXT} characters"
                )
        if self.not_before and self.not_after and self.not_before > self.not_after:
            raise TableError("a key's time ends before it begins")

    def refusal(self, now: datetime) -> str:
        """Why a signature of this key does not count now; empty if it does."""
        if self.revoked is not None:
            why = f": {self.reason}" if self.reason else ""
            return f"was revoked on {as_time(self.revoked)}{why}"
        if self.not_before is not None and now < self.not_before:
            return f"does not count before {as_time(self.not_before)}"
        if self.not_after is not None and now > self.not_after:
            return f"does not count after {as_time(self.not_after)}"
        return ""

    @classmethod
    def from_json(cls, fields: Fields) -> "Pinned":
        """Read it back; the key's name is computed again."""
        fields.only({"keyid", "public", "name"}, (*TIMES, "reason"))
        try:
            key = PublicKey.from_pem(fields.text("public"))
        except ReceiptError as error:
            raise TableError(f"{fields.where}: {error}") from None
        if fields.text("keyid") != key.keyid:
            raise TableError(f"{fields.where}: keyid is not that of the key, {key.keyid}")
        times = {name: _time(fields, name) for name in TIMES}
        reason = fields.text("reason") if fields.has("reason") else ""
        return cls(key=key, name=fields.text("name"), reason=reason, **times)


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that were decided about; a receipt decides wherever there is one at all.

    Examples:
        >>> nobody = verix_anon.Trust()
    """

    keys: tuple[Pinned, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.keys)

    def __add__(self, other: "Trust") -> "Trust":
        return Trust(self.keys + other.keys)

    def refusal(self, keyid: str, now: datetime) -> str | None:
        """Why a key does not count now, empty if it does; None if no one ever pinned it.

        What is pinned in one place and revoked in another is revoked.
        """
        found = [each for each in self.keys if each.key.keyid == keyid]
        if not found:
            return None
        revoked = [each for each in found if each.revoked is not None]
        return min((each.refusal(now) for each in revoked or found), key=len)

    def counting(self, now: datetime) -> tuple[PublicKey, ...]:
        """The keys whose signatures count now."""
        distinct = {each.key.keyid: each.key for each in self.keys}
        return tuple(key for keyid, key in distinct.items() if self.refusal(keyid, now) == "")

    def name_of(self, keyid: str) -> str:
        """What the owner calls a key; empty if nothing."""
        return next((each.name for each in self.keys if each.key.keyid == keyid and each.name), "")

    def beside(self, keys: Iterable[PublicKey]) -> "Trust":
        """With keys that were pinned elsewhere, without times; what is decided here stands."""
        decided = {each.key.keyid for each in self.keys}
        return self + Trust(tuple(Pinned(key=key) for key in keys if key.keyid not in decided))


NO_TRUST = Trust()


def trust_in(paths: Iterable[FilePath]) -> Trust:
    """The keys in files, each a public key in PEM or a trust file.

    Raises:
        TableError: One cannot be read, or holds no key: anyone who names it means to trust some.
    """
    found = NO_TRUST
    for path in paths:
        is_pem = small_file(path, MAX_BYTES, "key").lstrip().startswith(b"-----BEGIN")
        held = Trust((Pinned(key=read_public_key(path)),)) if is_pem else read_trust(path)
        if not held:
            raise TableError(f"{path} holds no key: pin one with verix-anon keys pin")
        found += held
    return found


def read_public_key(path: FilePath) -> PublicKey:
    """Read a public key; raises TableError."""
    data = small_file(path, MAX_KEY_BYTES, "key")
    if PRIVATE in data:
        raise TableError(f"{path} is a private key; its public half is {path}.pub")
    try:
        return PublicKey.from_pem(data.decode("ascii", "replace"))
    except ReceiptError as error:
        raise TableError(f"{path}: {error}") from None


def read_trust(path: FilePath) -> Trust:
    """Read a trust file.

    Raises:
        TableError: There is none, or it was altered.
    """
    data = small_file(path, MAX_BYTES, "trust file")
    fields = Fields.parse(data, f"{path}", TableError)
    fields.expect("format", FORMAT)
    fields.only({"format", "keys"})
    return Trust(tuple(Pinned.from_json(each) for each in fields.each("keys")))


def _time(fields: Fields, name: str) -> datetime | None:
    if not fields.has(name):
        return None
    moment = to_time(fields.text(name))
    if moment is None:
        raise fields.wrong(name, "a time in UTC such as 2026-01-31T12:00:00+00:00")
    return moment
