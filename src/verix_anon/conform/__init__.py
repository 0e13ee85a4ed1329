"""The conformance kit: what any provider, verifier or checker must do, case by case, as data.

kit.tar.xz          the kit, as a folder that is packed; `python -m tools.kit --write` makes it
kit.py              how a kit is read: kit.json, and the digests of all files
foreign_command.py  a foreign command, under a time limit
trials.py           shows every case to somebody's provider, verifier or checker
results.py          the result of every case
"""
