"""The studies behind every figure in results/: `make paper` or `python -m experiments NAME`.

cells.py       a study is many independent cells, cached by content, shared among processes
provenance.py  what a result was measured on: seed, commit, versions, machine
owner.py       the owner's side of a cell: sample a public table, prepare it, judge a delivery
stats.py       intervals, tests and effect sizes
inference.py   paired comparisons, and runs that share a seed
published.py   the paper's own tables, cell by cell; published_scale.py those of time and utility
peer_tools/    other anonymizers, each in an environment of its own
<study>.py     one study each: which cells there are, how one is run, what they add up to
paper.py       renders RESULTS.md and the figures from the results; computes nothing
"""
