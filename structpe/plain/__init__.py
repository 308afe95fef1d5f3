"""Plain data from texts of others: one loader for YAML, one for JSON, each with bounds, one bound for every size.

What comes out is what JSON knows: null, booleans, numbers of 64 bits, texts, lists, and mappings whose keys are texts.
"""

from structpe.plain.json import from_json, read_json
from structpe.plain.yaml import from_yaml, to_yaml

__all__ = ["from_json", "from_yaml", "read_json", "to_yaml"]
