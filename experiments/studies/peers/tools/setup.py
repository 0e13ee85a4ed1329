"""Make the peers' environments under .cache/peers, or those named: `make peers`.

A peer that cannot be installed is named and left out; the study then says so.
"""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["REQUIREMENTS", "environment", "main", "python_of"]

HERE = Path(__file__).resolve().parent
REQUIREMENTS = {path.stem: path for path in sorted((HERE / "requirements").glob("*.txt"))}
FOLDER = HERE.parents[3] / ".cache" / "peers"


def environment(name: str) -> Path:
    """Where the environment of a peer lies."""
    return FOLDER / name


def python_of(name: str) -> Path | None:
    """The interpreter of a peer's environment, None where it was not made to the end."""
    python = environment(name) / "bin" / "python"
    return python if (environment(name) / "installed").is_file() else None


def main(wanted: Sequence[str] = ()) -> int:
    """Make every environment that is missing; the exit status counts those that failed."""
    failed = 0
    for name, requirements in REQUIREMENTS.items():
        if wanted and name not in wanted:
            continue
        if python_of(name) is not None:
            print(f"{name}: there already")
            continue
        venv.create(environment(name), with_pip=True, clear=True)
        command = [str(environment(name) / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        done = subprocess.run([*command, "-r", str(requirements)], check=False)  # noqa: S603
        if done.returncode == 0:
            (environment(name) / "installed").write_text(requirements.read_text())
        failed += done.returncode != 0
        print(f"{name}: {'cannot be installed' if done.returncode else 'installed'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
