"""The guard: problems of a translation, seen from the two texts alone, and a second attempt at it."""
