"""Stamps of compiled code, checked by the architecture test and written by `make stamps`.

numba keeps what it has compiled until the file of the function changes. But the code of other
files that it calls is compiled into it, and numba does not see when those change: after an upgrade
the verifier would go on with old code. So every file of kernels names the digests of the files of
kernels that it imports from, and changes when they do.
"""

import ast
import re
from hashlib import sha256
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
STAMP = re.compile(r"^\n# Compiled in \(`make stamps`\): .*\n", re.MULTILINE)
IMPORT = re.compile(r"^from (verix[\w.]*) import", re.MULTILINE)


def kernel_files() -> list[Path]:
    """The files with functions that are compiled."""
    paths = sorted(SOURCE.rglob("*.py"))
    return [
        path for path in paths if re.search(r"^(import|from) numba", path.read_text("utf-8"), re.M)
    ]


def stamped(path: Path) -> str:
    """The text of a file of kernels with the stamp that it must have."""
    kernels = kernel_files()
    text = path.read_text("utf-8")
    called = [SOURCE / f"{name.replace('.', '/')}.py" for name in IMPORT.findall(text)]
    digests = [
        f"{each.stem} {sha256(each.read_bytes()).hexdigest()[:8]}"
        for each in called
        if each in kernels
    ]
    text = STAMP.sub("", text)
    if not digests:
        return text
    imports = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
    lines = text.splitlines(keepends=True)
    lines.insert(
        imports[-1].end_lineno or 0, f"\n# Compiled in (`make stamps`): {', '.join(digests)}.\n"
    )
    return "".join(lines)


def main() -> None:
    """Stamp every file, again until none changes: a stamp changes the file it is in."""
    is_done = False
    while not is_done:
        is_done = True
        for path in kernel_files():
            if (text := stamped(path)) != path.read_text("utf-8"):
                path.write_text(text, encoding="utf-8")
                is_done = False


if __name__ == "__main__":
    main()
