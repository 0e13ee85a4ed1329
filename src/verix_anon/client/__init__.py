"""The data owner: prepares, verifies, releases; the only holder of secrets."""
