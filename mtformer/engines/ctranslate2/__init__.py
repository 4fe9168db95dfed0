"""CTranslate2: convert a bundle, and run the result. Only conversion imports torch."""
