"""The page of a run: its data, training, results and environment."""
