"""One package an engine; engines never import each other. Each alone imports the library it is named for."""
