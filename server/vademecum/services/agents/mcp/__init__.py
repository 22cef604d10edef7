"""Offer the API as tools for coding agents (Model Context Protocol), over stdio or HTTP."""
