"""Providers of this package, and how mounted or installed ones are found."""
