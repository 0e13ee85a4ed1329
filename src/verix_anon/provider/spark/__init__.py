"""An engine on a cluster: the same tree and root, wherever the records lie."""
