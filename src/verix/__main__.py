"""`python -m verix` is the command `verix`."""

from verix.cli import main

if __name__ == "__main__":
    main()
