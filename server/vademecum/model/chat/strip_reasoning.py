"""Remove a model's reasoning from its answer.

Some models reason before they answer, between `<think>` and `</think>` or variants of these tags. The chat templates of
others (DeepSeek R1, Qwen3-Thinking) contain the opening tag, so only the closing one arrives.
"""

from __future__ import annotations

import re
from typing import Literal

_CLOSING = {"<think>": "</think>", "<thinking>": "</thinking>", "[THINK]": "[/THINK]"}
_UNOPENED = re.compile("|".join(map(re.escape, _CLOSING.values())))
_LONGEST = max(map(len, _CLOSING.values()))


class AnswerText:
    """Removes reasoning from an answer that arrives in pieces.

    Reasoning occurs only at the beginning of an answer. A tag in the middle is text, as in an answer about HTML. If the
    first closing tag has no opening tag, all text so far was reasoning, and `feed` sets `has_restarted`.
    """

    def __init__(self) -> None:
        self.has_restarted = False  # the caller discards the text so far and resets this flag
        self._state: Literal["begins", "thinks", "answers"] = "begins"
        self._closing = ""  # the tag that ends the current reasoning
        self._pending = ""  # text that may be the beginning of a tag
        self._shown = ""
        self._may_restart = True

    def feed(self, text: str) -> str:
        """Add a piece of the answer, and return the text to show now."""
        self._pending += text
        if self._state == "thinks":
            _, closing, after = self._pending.partition(self._closing)
            if not closing:
                self._pending = self._pending[-len(self._closing) :]
                return ""
            self._state, self._pending = "begins", after
        if self._state == "begins":
            self._pending = self._pending.lstrip()
            opening = next((tag for tag in _CLOSING if self._pending.startswith(tag)), "")
            if opening:
                self._state, self._closing, self._may_restart = "thinks", _CLOSING[opening], False
                rest, self._pending = self._pending.removeprefix(opening), ""
                return self.feed(rest)
            if any(tag.startswith(self._pending) for tag in _CLOSING):
                return ""
            self._state = "answers"
        return self._answer()

    def end(self) -> str:
        """Return the pending text at the end of the answer, because it is not the beginning of a tag."""
        text, self._pending = ("" if self._state == "thinks" else self._pending), ""
        return text

    def _answer(self) -> str:
        if not self._may_restart:
            return self.end()
        found = _UNOPENED.search(self._pending)
        if found is None:
            pending_length = _partial(self._pending)
            ready, self._pending = (
                self._pending[: len(self._pending) - pending_length],
                self._pending[-pending_length:] if pending_length else "",
            )
            self._shown += ready
            return ready
        before = self._shown + self._pending[: found.start()]
        self._may_restart = False
        if _is_quoted(before):
            return self.end()
        self.has_restarted = True
        self._state, self._pending = "begins", self._pending[found.end() :]
        return self.feed("")


def _partial(text: str) -> int:
    """Return how many of the last characters of a text may be the beginning of a closing tag."""
    sizes = range(min(_LONGEST - 1, len(text)), 0, -1)
    return next((n for n in sizes if any(tag.startswith(text[-n:]) for tag in _CLOSING.values())), 0)


def _is_quoted(before: str) -> bool:
    """Return whether a closing tag that follows `before` is part of the answer.

    The tag is part of the answer if `before` contains an opening tag or ends inside code.
    """
    line = before.rpartition("\n")[2]
    return any(tag in before for tag in _CLOSING) or before.count("```") % 2 == 1 or line.count("`") % 2 == 1
