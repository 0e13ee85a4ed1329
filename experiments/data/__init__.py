"""The paper's seven public tables, fetched by name.

catalog.py   DataSet: what is known of each table; describe(), DATASETS, NAMES, TITLES
public.py    load(): a table from a folder, the cache or its origin, always checked
origins.py   the download and the public file formats; hostile bytes end here
"""

from experiments.data.catalog import DATASETS, NAMES, TITLES, DataSet, describe
from experiments.data.public import load

__all__ = ["DATASETS", "NAMES", "TITLES", "DataSet", "describe", "load"]
