"""All cases of a size as a kit, and a kit as one file, which is how the package holds it."""

import lzma
import tarfile
from pathlib import Path

from tools.kit.checker_cases import for_checkers
from tools.kit.provider_cases import for_providers
from tools.kit.verifier_cases import for_verifiers
from tools.kit.writing import UnmadeCase, files_of, write_kit
from verix_anon.conform.kit import PACKED, Kit, KitSize

PLACE = Path(__file__).parents[2] / "src" / "verix_anon" / "conform" / PACKED
MODE = 0o644


def all_cases(size: KitSize = KitSize.SMALL) -> list[UnmadeCase]:
    """Every case; all that verifiers and checkers are shown is small."""
    if size is KitSize.LARGE:
        return for_providers(size)
    return [*for_providers(size), *for_verifiers(), *for_checkers()]


def make_kit(folder: Path, size: KitSize = KitSize.SMALL) -> Kit:
    """Make the whole kit of a size as a folder that is not there yet."""
    return write_kit(folder, all_cases(size), size)


def pack(folder: Path, path: Path) -> None:
    """Pack a folder; the same files give the same archive, whenever and by whomever it is made."""
    with (
        lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in files_of(folder):
            # What it does not say is 0 or empty: times, users and groups.
            member = tarfile.TarInfo(name)
            member.size, member.mode = (folder / name).stat().st_size, MODE
            with (folder / name).open("rb") as file:
                archive.addfile(member, file)
