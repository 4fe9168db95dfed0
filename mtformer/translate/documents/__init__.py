"""Documents: files whose text is translated, while every other byte stays unchanged.

A format finds the blocks of a file, such as paragraphs, cells or messages, by their places in its source. The text of a
block becomes one or more units: whole sentences with tags for inline elements, which the markup pipeline takes out and
puts back. Only blocks whose units have changed are rewritten, in place.
"""
