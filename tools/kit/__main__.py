"""Make the conformance kit: the file that the package holds, or a folder to be run.

`python -m tools.kit --write` makes src/verix_anon/conform/kit.tar.xz. After a change of a case,
change VERSION in tools/kit/writing.py as well. `python -m tools.kit --size large --out FOLDER`
makes two cases of a million rows, which takes minutes; `verix-anon conform --kit FOLDER` runs them.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.kit.packing import PLACE, make_kit, pack
from verix_anon.conform.kit import KitSize


def main() -> None:
    """Make what the words ask for."""
    parser = argparse.ArgumentParser(prog="python -m tools.kit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--write", action="store_true", help="write the package's file")
    wanted.add_argument("--out", type=Path, metavar="FOLDER", help="write a folder")
    parser.add_argument("--size", type=KitSize, choices=list(KitSize), default=KitSize.SMALL)
    given = parser.parse_args()
    if given.write and given.size is not KitSize.SMALL:
        parser.error("the package holds small tables; give --out FOLDER for large ones")
    with TemporaryDirectory(prefix="verix-kit-") as place:
        kit = make_kit(given.out or Path(place) / "kit", given.size)
        if given.write:
            pack(kit.folder, PLACE)
    print(f"{len(kit.cases)} cases; kit.json has the SHA-256 {kit.digest}.")
    print(f"Written to {PLACE if given.write else given.out}.")


if __name__ == "__main__":
    main()
