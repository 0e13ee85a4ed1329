"""A module for each page; each has a router."""
