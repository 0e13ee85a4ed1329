"""Compiled loops, arrays in and arrays out: the fast twins of `protocol/rules.py`.

Counts are integers; no `fastmath` and no parallel reduction, so the same bits come out on every
machine (numba runs on little-endian ones alone). They release the GIL, so callers may share the
work among threads by ranges. Compiled on first use and cached on disk by numba.

`growing` and `spreading` are what grows a tree, `splits` and `offers` what checks one, and
`single_nodes` what finds the paths of witnesses. They share primitives only: `radix` sorts,
`medians` selects, `trees` lays records out leaf by leaf.
"""

from typing import Any

from numba.core import config, event

from verix_anon.progress import compiling

__all__: list[str] = []

# numba obeys a file of the folder that a command is run in, which may come from anybody, and which
# can name a cache; what lies in a cache is run.
config._config_fname = ""
config.reload_config()  # type: ignore[no-untyped-call]


class _Listener(event.Listener):
    """What numba says when a kernel was not in its cache."""

    def on_start(self, event: Any) -> None:
        compiling.begin()

    def on_end(self, event: Any) -> None:
        compiling.end()


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
