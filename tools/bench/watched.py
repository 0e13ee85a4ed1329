"""Run one command, and write the most memory that it held to a file.

python -m tools.bench.watched FILE COMMAND ...
"""

import sys
from pathlib import Path

from verix_anon.cli import main

if __name__ == "__main__":
    path, sys.argv = Path(sys.argv[1]), ["verix-anon", *sys.argv[2:]]
    try:
        main()
    finally:
        from tools.bench.tables import peak_bytes

        path.write_text(str(peak_bytes()), encoding="ascii")
