"""Each subpackage is an engine. Engines never import each other.

Only the engine named after a library imports that library.
"""
