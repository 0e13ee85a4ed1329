"""The conformance kit: what any provider or verifier must do, case by case, as data.

independent.py   the protocol from the text alone; every expected delivery comes from it
tables.py        submissions from seeds
answered.py      submissions that a provider must answer, and with what
contracts.py     contracts that a provider must refuse
damaged.py       submissions that were damaged, or do not fit their contract
large.py         the rules once more, for a million records
folders.py       submissions and deliveries as folders, written without the engine's code
kit.py           a kit as a folder: kit.json, digests of all files, and how it is read
recipes.py       every case, as it is made
running.py       a foreign command, under a time limit
providers.py     providers of any make, and what they did with a submission
serving.py       a service among them
compare.py       a delivery against the one that is demanded
trying.py        every case, shown to a provider
results.py       what came of it
"""

from enum import StrEnum

__all__ = ["Size"]


class Size(StrEnum):
    """How much the tables of a kit hold."""

    SMALL = "small"
    LARGE = "large"
