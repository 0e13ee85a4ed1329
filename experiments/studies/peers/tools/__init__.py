"""Other anonymizers, each in an environment of its own: none of them is a dependency of verix.

setup.py           makes the environments: `make peers`
requirements/      what goes into each, pinned
run_<peer>.py      runs inside the peer's environment: CSV in, CSV out, JSON on stdout
check_pycanon.py   runs inside pycanon's: how anonymous a published table is
"""
