"""Embeddings by onnxruntime: models as manifests, built from published weights, run one text at a time."""
