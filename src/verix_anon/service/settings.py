"""The settings of a service, which workers get through their stdin."""

import errno
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verix_anon.machine import available_cores
from verix_anon.protocol.signing import SigningKey

DATABASE_FILE = "verix.db"
GIGABYTE, GIB = 10**9, 1 << 30
DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """What one tenant may ask for; each has an error of its own."""

    upload_bytes: int = 20 * GIGABYTE
    """The size of all files of a job together"""
    file_bytes: int = 20 * GIGABYTE
    rows: int = 50_000_000
    columns: int = 1_000
    concurrent_jobs: int = 20
    """Jobs of a tenant that are uploaded, wait or run"""
    requests_per_minute: int = 1_200
    """Requests of a tenant in a minute, at each HTTP process"""
    tenant_bytes: int = 100 * GIGABYTE
    """The size of all files that a tenant announced or that are kept for it"""
    request_bytes: int = 16 << 20
    """The size of a request, except a piece of an upload, which ends where its file does"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Where the service keeps what it knows, and how it works."""

    folder: Path
    """Staged uploads; the database and the blobs too unless they are elsewhere"""
    database: str = ""
    """An SQLAlchemy URL, of SQLite or PostgreSQL"""
    blobs: str = ""
    """An fsspec URL, of this disk or S3"""
    connections: int = 4_096
    """Connections that each HTTP process holds"""
    address_connections: int = 256
    """Connections from one other machine's address; 0 for any number, as behind a proxy"""
    http_processes: int = 1
    """Processes that answer requests; each counts requests, connections and figures by itself"""
    workers: int = field(default_factory=available_cores)
    worker_bytes: int = 4 * GIGABYTE
    """Memory that a job may take in its worker, beyond what the idle worker holds"""
    lease_seconds: float = 60.0
    """After this many seconds of silence a worker has lost its job"""
    retry_seconds: float = 30.0
    """How long a job waits before it is tried again, if a disk or the memory had no room for it"""
    job_seconds: float = 6 * 3_600.0
    """How long a worker may work on a job before the job fails"""
    sweep_seconds: float = 60.0
    store_seconds: float = 30.0
    """How long a store in a cloud may take to answer; large files get more time"""
    server: str = field(default_factory=lambda: f"{os.uname().nodename}-{secrets.token_hex(4)}")
    """The name of this server's row in the database: processes of one server share it"""
    retention_seconds: float = 7 * DAY
    """How long an upload may take, and how long an ended job is kept"""
    reserve_bytes: int | None = None
    """Bytes that uploads and jobs leave free on the disk; None for 5 % of it, at most 1 GiB"""
    key_file: Path | None = None
    """The private key that signs receipts; it is read once, at the start"""
    signing_key: str = field(default="", repr=False)
    """Its 32 bytes as they were read, in hexadecimal digits"""
    host: str = "127.0.0.1"
    port: int = 8443
    certificate: Path | None = None
    certificate_key: Path | None = None
    spark_above: int | None = None
    """Jobs of more rows than this are given to Spark"""
    spark: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, such as spark.master"""
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    @property
    def signer(self) -> SigningKey | None:
        """The key that signs receipts, or None if nothing is signed here."""
        key = bytes.fromhex(self.signing_key)
        return SigningKey(Ed25519PrivateKey.from_private_bytes(key)) if key else None

    @property
    def database_url(self) -> str:
        """The URL of the database, which is SQLite in the folder unless one was given."""
        return self.database or f"sqlite:///{self.folder.resolve() / DATABASE_FILE}"

    @property
    def blobs_url(self) -> str:
        """The URL of the blobs, which is in the folder unless one was given."""
        return self.blobs or str(self.folder.resolve() / "blobs")

    @property
    def staging(self) -> Path:
        """The folder of unfinished uploads, with a folder per job, named by its id."""
        return self.folder / "staging"

    @property
    def work(self) -> Path:
        """The folder where workers work, with a folder per claim, named by job and fence."""
        return self.folder / "work"

    def room(self) -> int:
        """Bytes that are free beyond the reserve, on the fullest disk; negative if there is less.

        Below the reserve only deletions and the database write, so that room can be made.
        """
        free, reserve = self.disk()
        return free - reserve

    def disk(self) -> tuple[int, int]:
        """Bytes that are free on the fullest disk, and the reserve there."""
        places = [self.folder, *([] if "://" in self.blobs_url else [Path(self.blobs_url)])]
        found = []
        for place in places:
            usage = shutil.disk_usage(place if place.is_dir() else self.folder)
            reserve = self.reserve_bytes
            found.append((usage.free, min(usage.total // 20, GIB) if reserve is None else reserve))
        return min(found, key=lambda each: each[0] - each[1])

    def check_room(self, n_bytes: int) -> None:
        """Raise OSError (ENOSPC) unless so many bytes can be written above the reserve."""
        if self.room() < n_bytes:
            raise OSError(errno.ENOSPC, "the reserve of free space is reached")

    def to_json(self) -> str:
        """On one line, as a worker reads it."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "ServiceSettings":
        """What `to_json` wrote."""
        given = json.loads(text)
        paths = ("folder", "key_file", "certificate", "certificate_key")
        given |= {name: Path(given[name]) for name in paths if given[name] is not None}
        return cls(**given | {"limits": ServiceLimits(**given["limits"])})
