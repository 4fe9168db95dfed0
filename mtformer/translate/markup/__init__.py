"""Markup and placeholders: taken out before a sentence is translated, and put back by alignment.

The marks of a line become a tree over the text that remains. Each node goes around the target words that translate the
words it surrounded, or beside the translations of its neighbours, so that pairs stay nested and no mark is lost.
"""
