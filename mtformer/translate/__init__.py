"""Strings to strings: the steps before the search and after it, and the public Python API."""
