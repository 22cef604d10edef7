"""Files: text out of bytes, in a process of its own, so that a hostile file costs one request.

sniff     bytes decide the type, never the name
encoding  letters out of bytes
sandbox   the process, its limits, and what its death means
worker    what runs inside
<format>  one file a format, imported by the worker alone

This package imports none of them by itself: the process that reads a file would load the sandbox too.
"""
