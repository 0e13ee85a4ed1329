"""How the conformance kit is made: every case, from seeds and from the text of the specification.

independent.py      the protocol from the text alone; every expected delivery comes from it
large.py            the same rules, written again for a million records
tables.py           submissions from seeds
folders.py          submissions and deliveries as folders, written without the engine's code
owners.py           owners whose secrets are public, and their honest deliveries
provider_cases.toml the submissions that a provider must answer or refuse; .py makes them
verifier_cases.toml the deliveries that a verifier must accept or reject; .py makes them
checker_cases.py    the proofs, receipts and logs that a checker must tell apart
writing.py          cases written as a folder, with kit.json
packing.py          all cases of a size, and the file that the package holds

`python -m tools.kit --write` makes src/verix_anon/conform/kit.tar.xz.
"""
