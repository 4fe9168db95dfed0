"""From text to token ids and back, with SentencePiece."""
