"""Audit an outsourced k-anonymization: what was proved, with what certainty.

The package follows the parties. `protocol` is what both agree on, without secrets and
without files; `files` puts it on disk and is where hostile input ends; `client` is the data
owner, who prepares, verifies and releases; `provider` is the cloud, which grows the tree and
commits to it; `adversaries` are clouds that misbehave; `datasets` has tables to try it on;
`cli` has one command per stage.

    prepared = verix.prepare(table, target="income", quasi="all", k=5)
    delivery = verix.LocalProvider().anonymize(prepared.submission)
    verdict = verix.verify(delivery, prepared.manifest, submission=prepared.submission)
    released = verix.release(delivery, prepared.manifest, verdict, table=table)

The names below are loaded when first used, so that `import verix` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = ["LocalProvider", "__version__", "prepare", "release", "verify"]

if TYPE_CHECKING:
    from verix.client.prepare import prepare
    from verix.client.release import release
    from verix.client.verify import verify
    from verix.provider.local import LocalProvider

_HOME = {
    "LocalProvider": "verix.provider.local",
    "prepare": "verix.client.prepare",
    "release": "verix.client.release",
    "verify": "verix.client.verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'verix' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
