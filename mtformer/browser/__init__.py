"""A model in a web page: its description for JavaScript, and the JavaScript that translates with it."""
