"""A table to try things on: census(), plausible people, any number of rows, the same everywhere."""

from verix_anon.datasets.synthetic import census

__all__ = ["census"]
