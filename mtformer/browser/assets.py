"""The files of the translator's page, whose translations are computed by the page itself or by a server."""

_NAMES = ("words", "alternatives", "glossary", "files")

# What assemble() takes, in order. The engine comes before them.
TRANSLATOR_ASSETS = [
    ("mtformer.browser", "translator.css"),
    ("mtformer.support", "dom.js"),
    *(("mtformer.browser", f"translator_{name}.js") for name in _NAMES),
    ("mtformer.browser", "translator.js"),
]
