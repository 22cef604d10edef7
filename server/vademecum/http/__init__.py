"""Thin: a route reads its arguments, calls one service, answers. No rule lives here.

Note for all route files: no `from __future__ import annotations`; Litestar reads the types at run time.
"""
