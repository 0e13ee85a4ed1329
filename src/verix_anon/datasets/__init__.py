"""Tables to try things on: one made on the spot, seven fetched by name.

synthetic.py   census(): a plausible table of people, any number of rows, the same everywhere
catalog.py     DataSet: what is known of each public table; describe(), DATASETS, NAMES
public.py      load(): a public table from a folder, the cache or its origin, always checked
origins.py     the download and the public file formats; hostile bytes end here
"""

from verix_anon.datasets.catalog import DATASETS, NAMES, DataSet, describe
from verix_anon.datasets.public import load
from verix_anon.datasets.synthetic import census

__all__ = ["DATASETS", "NAMES", "DataSet", "census", "describe", "load"]
