"""Whose signatures count: the keys that were pinned, and those that were revoked (spec §8.5).

The owner keeps them in a small file. Several keys count at once, so that a provider can change its
key. A revoked key never counts again. The checker's clock decides whether a key counts, because the
time in a receipt is only the claim of the key's holder, and a thief would claim another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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
    """A key that was pinned or revoked; times are by the owner's clock."""

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
        """Say why a signature of this key does not count now; empty if it does."""
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
    """The keys that were pinned or revoked; with at least one, a verdict needs a valid receipt.

    Examples:
        >>> no_keys = verix_anon.Trust()
    """

    keys: tuple[Pinned, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.keys)

    def __add__(self, other: "Trust") -> "Trust":
        return Trust(self.keys + other.keys)

    def refusal(self, keyid: str, now: datetime) -> str | None:
        """Say why a key does not count now; empty if it does, None if it was never pinned.

        A key that is pinned in one place and revoked in another is revoked.
        """
        found = [each for each in self.keys if each.key.keyid == keyid]
        if not found:
            return None
        revoked = [each for each in found if each.revoked is not None]
        return min((each.refusal(now) for each in revoked or found), key=len)

    def counting(self, now: datetime) -> tuple[PublicKey, ...]:
        """Return the keys whose signatures count now."""
        distinct = {each.key.keyid: each.key for each in self.keys}
        return tuple(key for keyid, key in distinct.items() if self.refusal(keyid, now) == "")

    def name_of(self, keyid: str) -> str:
        """Return the owner's name for a key; empty without one."""
        return next((each.name for each in self.keys if each.key.keyid == keyid and each.name), "")

    def beside(self, keys: Iterable[PublicKey]) -> "Trust":
        """Add keys that were pinned elsewhere, without times; entries here win."""
        decided = {each.key.keyid for each in self.keys}
        return self + Trust(tuple(Pinned(key=key) for key in keys if key.keyid not in decided))


NO_TRUST = Trust()


def trust_in(paths: Iterable[FilePath]) -> Trust:
    """Read the keys in files, each a public key in PEM or a trust file.

    Raises:
        TableError: A file cannot be read, or holds no key although the caller wants to trust it.
    """
    found = NO_TRUST
    for path in paths:
        is_pem = small_file(path, MAX_BYTES, "key").lstrip().startswith(b"-----BEGIN")
        held = Trust((Pinned(key=read_public_key(path)),)) if is_pem else read_trust(path)
        if not held:
            raise TableError(f"{path} holds no key: pin one with verix-anon keys pin")
        found += held
    return found


def keys_that_count(paths: Sequence[FilePath]) -> tuple[PublicKey, ...]:
    """Read the provider's keys in files, and return those that count now.

    Raises:
        TableError: A file cannot be read, or none of the keys counts.
    """
    found = trust_in(paths).counting(datetime.now(UTC))
    if paths and not found:
        raise TableError("none of the provider's keys counts: all are revoked or out of time")
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
        TableError: There is no such file, or it was altered.
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
