"""A model in a web page: what JavaScript needs to know of it, and the JavaScript that translates with it."""
