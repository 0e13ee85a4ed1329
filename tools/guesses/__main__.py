"""`python -m tools.guesses`: guess the roles of all tables, and count what is right.

Writes `results/guesses.json`, from which `docs/reference/guesses.md` is made.
"""

from tools.guesses.count import write

if __name__ == "__main__":
    print(write())
