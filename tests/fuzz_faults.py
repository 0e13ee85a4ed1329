"""Cases that fail in every way a campaign must survive, by their numbers."""

import os
import time
from pathlib import Path


def case(seed: int, number: int, path: Path) -> str:
    if number == 3:
        raise KeyError("stray")
    if number == 5:
        os._exit(9)
    if number == 7:
        time.sleep(1000)
    return f"seed {seed}"
