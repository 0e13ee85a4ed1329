"""Check that the packages of extras are installed, or say which command installs them."""

from importlib.util import find_spec

from verix_anon.errors import Error, TableError
from verix_anon.platform import IS_POSIX

NAME = "verix-anon"


def need(package: str, extra: str, what: str, fail: type[Error] = TableError) -> None:
    """Raise unless the package of an extra is installed; `what` needs it, as a subject."""
    if extra in ("service", "spark") and not IS_POSIX:
        raise fail(f"{what} needs Linux or macOS; on Windows, use verix-anon in WSL: wsl --install")
    if find_spec(package) is None:
        raise fail(f"{what} needs the extra {extra!r}; install it: {install_line(extra)}")


def install_line(extra: str) -> str:
    """Return a command for this Python that installs an extra from where verix-anon came from.

    A folder stays a folder: an index may have another package under the name.
    """
    import json
    import shlex
    import sys
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = urlsplit(origin.get("url", ""))
    source = url2pathname(url.path) if url.scheme == "file" else NAME
    edited = ["-e"] if origin.get("dir_info", {}).get("editable") else []
    return shlex.join([sys.executable, "-m", "pip", "install", *edited, f"{source}[{extra}]"])
