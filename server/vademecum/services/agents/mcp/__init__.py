"""The API as tools of coding agents (Model Context Protocol), by standard input and output or by HTTP."""
