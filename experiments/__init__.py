"""The studies behind every figure in results/: `make paper` or `python -m experiments NAME`.

core/      what studies share: cells and their cache, the owner's side, statistics, the report
data/      the paper's seven public tables
studies/   a folder each, found by its name
"""
