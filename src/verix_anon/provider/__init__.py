"""The provider: grows the tree, generalizes, commits; never sees a manifest."""
