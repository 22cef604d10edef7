"""A language model behind an OpenAI-compatible endpoint: Ollama, llama.cpp, vLLM, a provider's."""
