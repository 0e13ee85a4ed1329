"""Who is let in: tokens that are good once, and the sessions they were exchanged for.

All of it is known to this process alone, so that nothing is worth anything after it ended.
"""

import hmac
import secrets
from hashlib import sha256
from threading import Lock

__all__ = ["ANSWERS", "ASKS", "TOKEN", "Sessions", "proof"]

MOST_TOKENS = 16
"""So many links wait to be opened; a further one takes the place of the oldest."""
ASKS, ANSWERS, TOKEN = "asks", "answers", "token"
"""What is proved with a nonce: two of them are sent, and the token never is."""


class Sessions:
    """Tokens and sessions of one desk; only their digests are kept."""

    def __init__(self) -> None:
        self.control = secrets.token_urlsafe(32)
        """What `verix-anon desk --url` and the desk prove to each other that they know."""
        self._key = secrets.token_bytes(32)
        self._tokens: list[bytes] = []
        self._known: set[bytes] = set()
        self._asked: set[str] = set()
        self._lock = Lock()

    def fresh_token(self) -> str:
        """A token that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._expect(token)
        return token

    def answer(self, nonce: str, given: str) -> str | None:
        """Our proof for an asker who has proved itself; the token both make of the nonce is good.

        It need not be sent, so that whoever else listens, or passes this on, learns none.
        """
        if not hmac.compare_digest(proof(self.control, ASKS, nonce).encode(), given.encode()):
            return None
        with self._lock:
            if nonce in self._asked:
                return None
            self._asked.add(nonce)
            self._expect(proof(self.control, TOKEN, nonce))
        return proof(self.control, ANSWERS, nonce)

    def _expect(self, token: str) -> None:
        self._tokens = [*self._tokens[1 - MOST_TOKENS :], _digest(token)]

    def exchange(self, token: str) -> str | None:
        """A session for a token that was not used before."""
        session = secrets.token_urlsafe(32)
        with self._lock:
            if _digest(token) not in self._tokens:
                return None
            self._tokens.remove(_digest(token))
            self._known.add(_digest(session))
        return session

    def knows(self, session: str) -> bool:
        """Whether it is one of this process."""
        return _digest(session) in self._known

    def csrf(self, session: str) -> str:
        """What every form of a session holds."""
        return hmac.new(self._key, session.encode(), sha256).hexdigest()

    def is_csrf(self, session: str, given: str) -> bool:
        """Whether a form is one of the session's."""
        return hmac.compare_digest(self.csrf(session).encode(), given.encode())


def proof(control: str, what: str, nonce: str) -> str:
    """What only who knows the secret can make of a nonce, for one use."""
    return hmac.new(control.encode(), f"{what} {nonce}".encode(), sha256).hexdigest()


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
