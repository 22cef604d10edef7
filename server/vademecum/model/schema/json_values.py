"""Define literal values that the API and the commands share."""

from __future__ import annotations

from typing import Literal

SearchMode = Literal["hybrid", "meaning", "words"]
FORGET_EVERYTHING = "forget everything"
