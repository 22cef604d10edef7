"""A client for a language model behind an OpenAI-compatible endpoint: Ollama, llama.cpp, vLLM or a provider."""
