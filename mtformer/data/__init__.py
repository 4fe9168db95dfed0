"""From sources to batches: read, filter, augment, encode, mix."""
