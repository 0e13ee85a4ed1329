"""What both parties agree on. Pure and deterministic, without secrets and without files."""
