"""Translating files and pipes of any size: windows of lines, formats of the output."""
