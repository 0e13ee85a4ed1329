"""Compiled loops, arrays in and arrays out: the fast twins of `protocol/rules.py`.

Counts are integers; no `fastmath` and no parallel reduction, so the same bits come out on every
machine (numba runs on little-endian ones alone). They release the GIL, so callers may share the
work among threads by ranges. Compiled on first use and cached on disk by numba.

`growing` is what grows a tree; `splits`, `blocks` and `across` are what checks one. They share
primitives only: `bits`, `radix`, `medians`, and `trees`, which lays records out leaf by leaf.
"""
