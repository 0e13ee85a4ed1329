"""What both parties agree on: pure, deterministic, without secrets and without files."""
