"""Audit an outsourced k-anonymization: what was proved, with what certainty.

The package follows the parties. `protocol` is what both agree on, without secrets and
without files; `files` puts it on disk and is where hostile input ends; `client` is the data
owner, who prepares, verifies and releases; `provider` is the cloud, which grows the tree and
commits to it; `adversaries` are clouds that misbehave; `datasets` has a table to try it on;
`cli` has one command per stage.

    prepared = verix_anon.prepare(table, target="income", quasi="all", k=5)
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verdict = verix_anon.verify(delivery, prepared.manifest, submission=prepared.submission)
    released = verix_anon.release(delivery, prepared.manifest, verdict, table=table)

The names below are loaded when first used, so that `import verix_anon` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

__all__ = ["LocalProvider", "__version__", "prepare", "release", "verify"]

if TYPE_CHECKING:
    from verix_anon.client.prepare import prepare
    from verix_anon.client.release import release
    from verix_anon.client.verify import verify
    from verix_anon.provider.local import LocalProvider

_HOME = {
    "LocalProvider": "verix_anon.provider.local",
    "prepare": "verix_anon.client.prepare",
    "release": "verix_anon.client.release",
    "verify": "verix_anon.client.verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'verix_anon' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
