"""The studies behind every figure in results/: `make paper` or `python -m experiments NAME`.

core/      what studies share: cells and their cache, the owner's side, statistics, the report
data/      the paper's seven public tables
studies/   a folder each
    study.py      which cells there are, how one is run, what they add up to
    job.py        what a cell runs in a process of its own
    published.py  the paper's own tables, cell by cell
    render.py     what was found, in words and tables; computes nothing
    figures.py    the same, drawn
"""
