"""Documents: files whose text is translated, and of which every other byte stays as it is.

A format finds the blocks of a file, such as paragraphs, cells or messages, by their places in its source. The text of a
block becomes one or several units: whole sentences with tags for what stands inside of them, which the markup pipeline
takes out and puts back. Only the blocks whose units have changed are written anew, into their places.
"""
