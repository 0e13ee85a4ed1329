"""What lies in the folder that a command is run in is data: no library takes orders from it."""

import subprocess
import sys
from pathlib import Path

COMPILED = """
from verix_anon.kernels import trees
from numba.core import config
config.reload_config()
print(repr(config.CACHE_DIR), config.DISABLE_JIT)
"""
DRAWN = """
from verix_anon.client.report.pictures import Named, PlotLine, over_k
from verix_anon.translation import PageTexts
named = Named("k", "it")
print(over_k((PlotLine("a", (2, 5), (0.1, 0.2)),), None, "risk", named, PageTexts("en")))
"""


def said(folder: Path, program: str) -> str:
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_file_names_a_cache_of_compiled_code(tmp_path: Path) -> None:
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: ./cache\ndisable_jit: 1\n")
    assert said(tmp_path, COMPILED) == "'' 0"
    assert not (tmp_path / "cache").exists()


def test_no_file_says_how_pictures_are_drawn(tmp_path: Path) -> None:
    plain = said(tmp_path, DRAWN)
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\naxes.labelpad: 50\n")
    assert said(tmp_path, DRAWN) == plain
