"""Audit an outsourced k-anonymization: what was proved, with what certainty.

The package follows the parties. `protocol` is what both agree on, without secrets and
without files; `files` puts it on disk and is where hostile input ends; `client` is the data
owner, who prepares, verifies and releases; `provider` is the cloud, which grows the tree and
commits to it; `service` is the provider behind HTTP; `adversaries` are clouds that misbehave;
`datasets` has a table to try it on; `cli` has one command per stage.

    prepared = verix_anon.prepare(table, target="income", quasi="all", k=5)
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verdict = verix_anon.verify(delivery, prepared.manifest, submission=prepared.submission)
    released = verix_anon.release(delivery, prepared.manifest, verdict, table=table)

The names below are all that a user needs. They are loaded when first used, so that
`import verix_anon` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

__all__ = [
    "AuditLog",
    "Delivery",
    "Exploration",
    "ExploreOptions",
    "Explored",
    "Finding",
    "Ledger",
    "LocalProvider",
    "Manifest",
    "PrepareOptions",
    "Prepared",
    "Profile",
    "Proof",
    "Provider",
    "Read",
    "Reading",
    "ReleaseOptions",
    "Released",
    "RemoteOptions",
    "RemoteProvider",
    "Sheet",
    "SparkProvider",
    "Submission",
    "Verdict",
    "VerifyOptions",
    "__version__",
    "adversaries",
    "check_proof",
    "datasets",
    "errors",
    "explore",
    "prepare",
    "prove",
    "read_delivery",
    "read_manifest",
    "read_proof",
    "read_released",
    "read_submission",
    "read_table",
    "read_table_as",
    "read_verdict",
    "release",
    "verify",
    "write_delivery",
    "write_manifest",
    "write_proof",
    "write_submission",
    "write_table",
    "write_verdict",
]

if TYPE_CHECKING:
    from verix_anon import adversaries, datasets, errors
    from verix_anon.client.audit_log import AuditLog
    from verix_anon.client.explore import Exploration, Explored, ExploreOptions, explore
    from verix_anon.client.ledger import Ledger
    from verix_anon.client.manifest import Manifest, read_manifest, write_manifest
    from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
    from verix_anon.client.prove import prove
    from verix_anon.client.release import Released, ReleaseOptions, release
    from verix_anon.client.release.reading import read_released
    from verix_anon.client.release.sheet import Sheet
    from verix_anon.client.remote import RemoteOptions, RemoteProvider
    from verix_anon.client.verdict import Finding, Profile, Verdict, read_verdict, write_verdict
    from verix_anon.client.verify import VerifyOptions, verify
    from verix_anon.files.deliveries import read_delivery, write_delivery
    from verix_anon.files.proofs import check_proof, read_proof, write_proof
    from verix_anon.files.submissions import read_submission, write_submission
    from verix_anon.files.tables import Read, Reading, read_table, read_table_as, write_table
    from verix_anon.protocol.inclusion import Proof
    from verix_anon.protocol.messages import Delivery, Provider, Submission
    from verix_anon.provider.local import LocalProvider
    from verix_anon.provider.spark import SparkProvider

_HOMES = {
    "": ("adversaries", "datasets", "errors"),
    "client.audit_log": ("AuditLog",),
    "client.explore": ("Exploration", "ExploreOptions", "Explored", "explore"),
    "client.ledger": ("Ledger",),
    "client.manifest": ("Manifest", "read_manifest", "write_manifest"),
    "client.prepare": ("PrepareOptions", "Prepared", "prepare"),
    "client.prove": ("prove",),
    "client.release": ("ReleaseOptions", "Released", "release"),
    "client.release.reading": ("read_released",),
    "client.release.sheet": ("Sheet",),
    "client.remote": ("RemoteOptions", "RemoteProvider"),
    "client.verdict": ("Finding", "Profile", "Verdict", "read_verdict", "write_verdict"),
    "client.verify": ("VerifyOptions", "verify"),
    "files.deliveries": ("read_delivery", "write_delivery"),
    "files.proofs": ("check_proof", "read_proof", "write_proof"),
    "files.submissions": ("read_submission", "write_submission"),
    "files.tables": ("Read", "Reading", "read_table", "read_table_as", "write_table"),
    "protocol.inclusion": ("Proof",),
    "protocol.messages": ("Delivery", "Provider", "Submission"),
    "provider.local": ("LocalProvider",),
    "provider.spark": ("SparkProvider",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'verix_anon' has no attribute {name!r}")
    if not _HOME[name]:
        return import_module(f"verix_anon.{name}")
    return getattr(import_module(f"verix_anon.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
