"""What the translator's page is made of, whatever computes its translations: the page itself or a server."""

_NAMES = ("words", "alternatives", "glossary", "files")

# What assemble() takes, in order. The engine comes before them.
TRANSLATOR_ASSETS = [
    ("mtformer.browser", "translator.css"),
    ("mtformer.explain", "dom.js"),
    *(("mtformer.browser", f"translator_{name}.js") for name in _NAMES),
    ("mtformer.browser", "translator.js"),
]
