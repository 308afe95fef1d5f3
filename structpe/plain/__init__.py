"""Plain data from untrusted texts: a loader for YAML and one for JSON, each with bounds on size and depth.

The result has the types of JSON: null, booleans, numbers of 64 bits, texts, lists, and mappings whose keys are texts.
"""

from structpe.plain.json import from_json, read_json
from structpe.plain.yaml import from_yaml, to_yaml

__all__ = ["from_json", "from_yaml", "read_json", "to_yaml"]
