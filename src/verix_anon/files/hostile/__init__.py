"""Where hostile bytes end: Parquet from strangers is checked here before Arrow sees it."""
