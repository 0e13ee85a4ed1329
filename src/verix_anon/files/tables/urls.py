"""URLs of tables, of which no password is ever shown, written or logged."""

import re
from urllib.parse import unquote

from verix_anon.files.store import is_url

__all__ = ["shown_url", "without_secrets"]

HIDDEN = "..."
SECRET_PARAMETER = re.compile(r"(?<=[?&])([^=&]*(?:pass|secret|token|key|sig)[^=&]*)=([^&]*)", re.I)


def shown_url(name: str) -> str:
    """A path as it is, a URL without what may be a password."""
    if not is_url(name):
        return name
    scheme, _, rest = name.partition("://")
    # By the last @: whoever does not quote a password may have an @, / or ? in it.
    user, at, place = rest.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:{HIDDEN}"
    shown = f"{scheme}://{user}{at}{place}"
    return SECRET_PARAMETER.sub(rf"\1={HIDDEN}", shown)


def without_secrets(text: str, name: str) -> str:
    """What is said of a URL, unless it holds a password of it."""
    text = text.replace(name, shown_url(name))
    if any(secret in text for secret in _secrets(name)):
        return "cannot be read (why is not shown, for the password stands in it)"
    return text


def _secrets(name: str) -> list[str]:
    if not is_url(name):
        return []
    rest = name.partition("://")[2]
    found = [rest.rpartition("@")[0].partition(":")[2], rest.partition("@")[0].partition(":")[2]]
    found = found if "@" in rest else []
    found += [value for _, value in SECRET_PARAMETER.findall(name)]
    return [each for secret in found for each in {secret, unquote(secret)} if each]
