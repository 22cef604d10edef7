"""The HTTP layer: each route reads its parameters, calls one service and responds. Routes contain no business rules.

Route files do not use `from __future__ import annotations`, because Litestar reads the types at run time.
"""
