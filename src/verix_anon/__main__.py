"""`python -m verix_anon` is the command `verix-anon`."""

from verix_anon.cli import main

if __name__ == "__main__":
    main()
