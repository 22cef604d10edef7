"""Which facts belong to a question: those that share a telling word with it, or lie close in meaning.

A fact whose source was removed never belongs to any, nor does one that the assistant has proposed until a person has
confirmed it: chat is never authoritative, and what is said in one project is not told in another. A word is a term as
search knows it (`terms` is handed in), less the words that every question has: of a few languages only, since in the
others nothing worse happens than a fact too many. Meaning is the caller's to judge, by a threshold that was fitted
for the model; without one, words alone decide.
The browser mirrors this file; shared cases: tests/conformance/prompt.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from vademecum.model.schema.derived_ids import is_fact_id

Terms = Callable[[str], Sequence[str]]

# Articles, pronouns, prepositions, auxiliaries and what asks, as `ranking.fold` spells them; without those that name a
# thing in English, as `son` and `hat` do.
_COMMON = (
    "a about after all also am an and any are as at be been before but by can could did do does for from "
    "give had has have he her him his how i if in is it its me my no not of on or our she should so tell "
    "than that the their them then there these they this those to us was we were what when where which "
    "who whom whose why will with would you your aber auch auf aus bei bin bist das dass dem den der des "
    "die dir ein eine einem einen einer es fur habe ich ihr im ist kann man mein meine mir mit nach nicht "
    "oder sich sie sind und uns von vom wann warum welche wem wen wer wie wir wo zu zum zur au aux avec "
    "ce ces dans de du elle en est et il je la le les leur lui ma mes mon ne nous ou par pas pour "
    "pourquoi quand que quel quelle qui sa se ses sont sur te tu un une vous al como con cual cuando del "
    "donde el ella eres esta este las lo los mas mi para pero por porque quien ser si su sus una uno yo "
    "che chi come da di dove e gli ho non nel per piu quale quando sei sono com em eu meu minha na nao o "
    "os quem sao tem um uma aan dat deze een het hoe ik met mijn niet op voor waar wat zijn"
)
COMMON = frozenset(_COMMON.split())
_HUMP = re.compile("([a-z0-9])([A-Z])")


class Fact(msgspec.Struct, frozen=True, rename="camel"):
    """A row of `facts`, as far as it matters here."""

    id: str
    key: str
    value: str
    updated_at: str
    confirmed: bool
    confidence: float
    source_removed: bool

    @property
    def is_proposal(self) -> bool:
        """Drawn from a conversation, and confirmed by nobody."""
        return not self.confirmed and is_fact_id(self.id)


def telling(text: str, terms: Terms) -> set[str]:
    """The words of a text that say what it is about."""
    found = {term for term in terms(_HUMP.sub(r"\1 \2", text)) if term not in COMMON}
    return {term for term in found if len(term) > 1 or not term.isascii()}


def belonging(
    question: str, facts: Iterable[Fact], terms: Terms, close: Collection[str] = ()
) -> list[tuple[int, Fact]]:
    """Those of the facts that belong to the question, each with how many words it shares with it."""
    asked = telling(question, terms)
    counted = (
        (len(asked & telling(f"{fact.key} {fact.value}", terms)), fact)
        for fact in facts
        if not (fact.source_removed or fact.is_proposal)
    )
    return [(shared, fact) for shared, fact in counted if shared or fact.id in close]


def most_useful(counted: Iterable[tuple[int, Fact]]) -> list[tuple[int, Fact]]:
    """Confirmed ones first, then those that share the most words with the question, then the surest, then the newest."""
    ranked = sorted(counted, key=lambda pair: pair[1].id)
    ranked.sort(key=lambda pair: pair[1].updated_at, reverse=True)
    ranked.sort(key=lambda pair: (not pair[1].confirmed, -pair[0], -pair[1].confidence))
    return ranked
