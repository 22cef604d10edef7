"""Files: text out of bytes, in a process of its own, so that a hostile file costs one request.

sniff     bytes decide the type, never the name
encoding  letters out of bytes
sandbox   the process, its limits, and what its death means
worker    what runs inside
<format>  one file a format, imported by the worker alone
"""

from vademecum.engines.files.parsed import Limits, Parsed, Part, Unreadable
from vademecum.engines.files.sandbox import parse

__all__ = ["Limits", "Parsed", "Part", "Unreadable", "parse"]
