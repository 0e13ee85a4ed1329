"""Where hostile bytes end: Parquet from whoever sent it, checked before Arrow sees it."""
