"""Records: an answer with everything a stranger needs to check it, and the check."""

from ifonly.record.checks import Check
from ifonly.record.reading import record_schema
from ifonly.record.verifying import Verdict, verify

__all__ = ["Check", "Verdict", "record_schema", "verify"]
