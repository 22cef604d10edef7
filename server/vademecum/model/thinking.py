"""Some models think aloud before they answer, between `<think>` and `</think>`. That is not shown."""

from __future__ import annotations

from typing import Literal

OPENING = "<think>"
CLOSING = "</think>"


class AnswerText:
    """The text of an answer out of pieces as they arrive. Only what an answer begins with is thinking: the mark in the
    middle of it is text, as in an answer about HTML."""

    def __init__(self) -> None:
        self._state: Literal["begins", "thinks", "tells"] = "begins"
        self._held = ""  # not decided yet: it may be the beginning of a mark

    def feed(self, text: str) -> str:
        """What can be shown now."""
        if self._state == "tells":
            return text
        self._held += text
        if self._state == "thinks":
            _, closing, after = self._held.partition(CLOSING)
            if not closing:
                self._held = self._held[-len(CLOSING) :]
                return ""
            self._state, self._held = "begins", after
        self._held = self._held.lstrip()
        if self._held.startswith(OPENING):
            self._state = "thinks"
            rest, self._held = self._held.removeprefix(OPENING), ""
            return self.feed(rest)
        if OPENING.startswith(self._held):
            return ""
        self._state = "tells"
        return self.end()

    def end(self) -> str:
        """What was held back at the end of the answer and turned out to be text."""
        text, self._held = ("" if self._state == "thinks" else self._held), ""
        return text
