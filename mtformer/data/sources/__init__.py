"""Sentence pairs from the sources of a config: files of several formats, data sets, test sets, the phrasebook."""
