"""Compiled loops, arrays in and arrays out: the fast twins of `protocol/rules.py`.

Counts are integers, and there is no `fastmath` and no parallel reduction. So every machine computes
the same bits (numba runs on little-endian machines only). The loops release the GIL, so callers may
divide the work among threads. numba compiles them on first use and caches them on disk.

`growing` and `spreading` grow a tree. `splits` and `offers` check one. `single_nodes` finds the
paths of witnesses. They share only primitives: `radix` sorts, `medians` selects, and `trees` lays
records out leaf by leaf.
"""

from typing import Any

from numba.core import config, event

from verix_anon.progress import compiling

__all__: list[str] = []

# numba reads settings from a file in the current folder. A stranger may have put it there, and it
# can name a cache, from which numba runs code. So numba must not read that file.
config._config_fname = ""
config.reload_config()  # type: ignore[no-untyped-call]


class _Listener(event.Listener):
    """Hears from numba when a kernel is not in its cache."""

    def on_start(self, event: Any) -> None:
        compiling.begin()

    def on_end(self, event: Any) -> None:
        compiling.end()


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
