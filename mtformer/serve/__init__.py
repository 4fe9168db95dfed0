"""A server: requests over HTTP to translations, all through one scheduler."""
