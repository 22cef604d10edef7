"""Compute embeddings with onnxruntime. A manifest describes each model; graphs are built from published weights."""
