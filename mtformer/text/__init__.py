"""Texts and what is in them: lines, sentences, words, numbers, dates and names, in many languages; and tokenizers."""
