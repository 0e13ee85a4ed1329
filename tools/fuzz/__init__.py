"""Spoiled deliveries and submissions, and odd tables to release, as many as one has time for.

    python -m tools.fuzz --count 1000000

A case is told by a seed and its number alone, so that a failure of any run can be had again:
`--seed S --case N`.

`recheck_campaign` counts on the published files of random releases what was asked of them.
"""
