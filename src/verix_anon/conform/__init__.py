"""The conformance kit: what any provider or verifier must do, case by case, as data.

independent.py   the protocol from the text alone; every expected delivery comes from it
tables.py        submissions from seeds
answered.py      submissions that a provider must answer, and with what
refused.py       submissions that a provider must refuse
folders.py       submissions and deliveries as folders, written without the engine's code
kit.py           a kit as a folder: kit.json, digests of all files, and how it is read
"""
