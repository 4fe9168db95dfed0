"""The page of a run: what was trained on what, how it went, and how good the result is."""
