"""What `make release` does beside the checks and tests: `python -m tools.release COMMAND`.

`check` says what stands in the way of a release. `audit` asks a vulnerability service about every
pinned package, and fails if one is vulnerable or has no answer. `build` makes the wheel and the
sdist, installs each in an empty environment, tries it there, and prints the digests. Nothing is
uploaded.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.core import staleness

ROOT = Path(__file__).parent.parent
CONNECT = "Connect this machine to the vulnerability service, then run `make audit` again."
STATUS = "`python -m experiments --status` says why"
IMPORT_ALL = "import verix_anon as v; [getattr(v, name) for name in v.__all__]"


def version(root: Path) -> str:
    """The version that the package says it has, read without importing it."""
    text = (root / "src" / "verix_anon" / "__init__.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(found)


def sections(changelog: str) -> list[tuple[str, str]]:
    """The headings of the changelog's sections, newest first, and what stands below each."""
    parts = re.split(r"^## (.+)\n", changelog, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def problems(root: Path) -> list[str]:
    """Why this tree cannot be released, in sentences; none if it can."""
    found = []
    status = ["git", "status", "--porcelain"]
    changed = subprocess.run(status, cwd=root, capture_output=True, text=True, check=True).stdout
    if changed:
        found.append(f"these files are not committed:\n{changed.rstrip()}")
    (unreleased, open_lines), (newest, lines), *_ = [
        *sections((root / "CHANGELOG.md").read_text(encoding="utf-8")),
        ("nothing", ""),
        ("nothing", ""),
    ]
    if unreleased != "[Unreleased]":
        found.append("the changelog does not begin with a section [Unreleased]")
    elif open_lines:
        found.append("changes stand under [Unreleased]; move them to the version they come with")
    if not re.fullmatch(rf"\[{re.escape(version(root))}\] - \d{{4}}-\d\d-\d\d", newest):
        found.append(f"the version is {version(root)}, but the newest section is {newest}")
    elif not lines:
        found.append(f"the changelog says nothing about {newest}")
    stale = [each.name for each in staleness.statuses(root / "results") if each.is_stale]
    if stale:
        found.append(f"these results are not of this version: {', '.join(stale)}; {STATUS}")
    return found


def audit(root: Path) -> str:
    """Say that no pinned package has a known vulnerability; stop with a sentence otherwise.

    pip-audit exits with 1 for a vulnerability and for no connection. It exits with 0 and says "No
    known vulnerabilities found" if the service knows none of the packages, as behind a mirror. So
    its exit code does not count here: only an answer about every pin does.
    """
    pins = root / "constraints.txt"
    # The pins are complete, so nothing need be resolved or installed.
    wanted = ["--requirement", str(pins), "--no-deps", "--disable-pip", "--format", "json"]
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", *wanted]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr.strip() or "pip-audit printed nothing").splitlines()[-1]
        sys.exit(f"Nothing was audited, because pip-audit got no answer: {reason}\n{CONNECT}")
    unknown = [
        answer.get("skip_reason", answer["name"]) for answer in answers if "vulns" not in answer
    ]
    n_pins = len(re.findall(r"^[^#\s]", pins.read_text(encoding="utf-8"), re.MULTILINE))
    if unknown or len(answers) != n_pins:
        shown = "".join(f"\n- {reason}" for reason in unknown[:5])
        answered = len(answers) - len(unknown)
        sys.exit(f"Only {answered} of {n_pins} pinned packages were audited.{shown}\n{CONNECT}")
    found = [
        f"- {answer['name']} {answer['version']}: {known['id']}, fixed in"
        f" {', '.join(known['fix_versions']) or 'no version yet'}"
        for answer in answers
        for known in answer["vulns"]
    ]
    if found:
        lines = "\n".join(found)
        sys.exit(f"Pinned packages have known vulnerabilities. Raise these pins:\n{lines}")
    return f"No known vulnerability in {n_pins} pinned packages."


def build(root: Path) -> list[Path]:
    """The wheel and the sdist, made anew in dist/."""
    dist = root / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    # Without isolation the backend is the pinned one of this environment.
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist)], root)
    built = sorted(dist.iterdir())
    names = {f"verix_anon-{version(root)}{end}" for end in (".tar.gz", "-py3-none-any.whl")}
    if {path.name for path in built} != names:
        sys.exit(f"{dist} holds {[path.name for path in built]}, not {sorted(names)}")
    return built


def trials(binaries: Path, package: Path, constraints: Path) -> list[list[str]]:
    """The commands that a package must pass in an environment that held nothing before."""
    python, command = str(binaries / "python"), str(binaries / "verix-anon")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    return [
        [*pip, "-c", str(constraints), str(package)],
        [command, "--version"],
        [python, "-W", "error", "-c", IMPORT_ALL],
        [command, "demo", "--rows", "2000"],
    ]


def try_out(package: Path, root: Path) -> None:
    """Install a package where nothing of this checkout can be seen, and use it."""
    with TemporaryDirectory() as scratch:
        print(f"{package.name}, in an empty environment:", flush=True)
        venv.create(Path(scratch) / "venv", with_pip=True)
        for command in trials(Path(scratch) / "venv" / "bin", package, root / "constraints.txt"):
            said = run(command, Path(scratch))
            if command[-1] == "--version" and said.strip() != f"verix-anon {version(root)}":
                sys.exit(f"{package.name} says it is {said.strip()!r}")


def run(command: Sequence[str], folder: Path) -> str:
    """Run a command that sees nothing of this checkout but what it is given; stop if it fails."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["VERIX_LEDGER"] = str(folder / "ledger.jsonl")
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nexit code {done.returncode}: {' '.join(command)}")
    return done.stdout


def digests(packages: Sequence[Path]) -> str:
    """A line for each file, as `sha256sum --check` reads it."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages
    )


def main(wanted: str) -> None:
    if wanted == "check":
        if found := problems(ROOT):
            sys.exit("No release yet:\n" + "\n".join(f"- {problem}" for problem in found))
    elif wanted == "audit":
        print(audit(ROOT))
    elif wanted == "build":
        packages = build(ROOT)
        for package in packages:
            try_out(package, ROOT)
        print(f"In {ROOT / 'dist'}; nothing was uploaded.\n{digests(packages)}", end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
