"""The conformance kit: what any provider, verifier or checker must do, case by case, as data.

independent.py      the protocol from the text alone; every expected delivery comes from it
large.py            the same rules, written again for a million records
tables.py           submissions from seeds
folders.py          submissions and deliveries as folders, written without the engine's code
owners.py           owners whose secrets are public, and their honest deliveries
provider_cases.toml the submissions that a provider must answer or refuse; .py makes them
verifier_cases.toml the deliveries that a verifier must accept or reject; .py makes them
checker_cases.py    the proofs, receipts and logs that a checker must tell apart, from a file
kit.py              a kit as a folder: kit.json, digests of all files, and how it is read
foreign_command.py  a foreign command, under a time limit
trials.py           shows every case to somebody's provider, verifier or checker
results.py          the result of every case
"""

from enum import StrEnum

__all__ = ["KitSize"]


class KitSize(StrEnum):
    """How much the tables of a kit hold."""

    SMALL = "small"
    LARGE = "large"
