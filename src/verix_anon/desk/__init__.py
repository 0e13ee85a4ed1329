"""The owner's pages on this machine (extra): they show what client/ computes."""
