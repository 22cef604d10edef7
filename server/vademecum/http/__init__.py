"""The HTTP layer: a route reads its parameters, calls one service and responds. It contains no business rules.

Route files do not use `from __future__ import annotations`, because Litestar reads the types at run time.
"""
