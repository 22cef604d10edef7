"""Decide which answers a language model may read.

Quotation answers repeat documents that another session may not have borrowed, and "not found" answers contain no
information. Users can find both kinds of answer by search, but neither kind enters a prompt, a summary or an
extraction. An episode without `model` has an ordinary answer. The browser mirrors this file; shared cases:
tests/conformance/answers.json.
"""

from __future__ import annotations

QUOTES = "quotes"  # the value of `model` for an answer that consists of quotations
NOT_FOUND = "I could not find information about that in your documents."
NO_DOCUMENTS = "This conversation has no documents yet. Add one, and ask again."
_MARKUP = " \t\r\n\"'“”‘’*_`>"  # characters that a model may put before a sentence that it repeats


def enters_prompts(model: str, ai_response: str) -> bool:
    """Return False for a quotation answer and for a "not found" answer."""
    return model != QUOTES and not ai_response.lstrip(_MARKUP).startswith((NOT_FOUND, NO_DOCUMENTS))
