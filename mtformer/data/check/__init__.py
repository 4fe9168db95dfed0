"""``mtformer data check``: what is wrong with the text of a config, where, and a copy without it."""

from mtformer.data.check.checkup import Checkup, check
from mtformer.data.check.cleaning import write_clean
from mtformer.data.check.report import as_json, as_text

__all__ = ["Checkup", "as_json", "as_text", "check", "write_clean"]
