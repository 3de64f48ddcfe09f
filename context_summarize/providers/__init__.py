"""Providers of this package, and the search for installed ones."""
