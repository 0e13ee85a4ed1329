"""What a result was measured on: commit, versions and machine."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

__all__ = ["PACKAGES", "facts", "machine"]

PACKAGES = ("numpy", "numba", "pyarrow", "scikit-learn", "scipy", "xgboost-cpu")


def facts() -> dict[str, object]:
    """Everything a reader needs to judge or repeat a result."""
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": machine(),
    }


def machine() -> str:
    """The processor, its cores and the system: what a time was measured on."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"


def _commit() -> str:
    """The commit, dirty if anything differs from it but the results that runs write."""
    described = _git("describe", "--always").stdout.strip()
    is_clean = _git("diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)results").returncode == 0
    return (described if is_clean else f"{described}-dirty") if described else "unknown"


def _git(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603
        ["git", *words],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")
