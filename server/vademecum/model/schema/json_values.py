"""What people and programs say to the letter, to the API and to the commands alike."""

from __future__ import annotations

from typing import Literal

SearchMode = Literal["hybrid", "meaning", "words"]
FORGET_EVERYTHING = "forget everything"
