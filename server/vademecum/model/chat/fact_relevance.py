"""Select the facts that are relevant to a question: those that share a distinctive term with it or are close in meaning.

A fact is never relevant if its source was removed, or if it was extracted and the user has not confirmed it. An
unconfirmed fact could be wrong, and it could carry text of one project into another, because facts have no project. The
terms are those of search (`tokenize` is passed in) without the common words of a few languages. In languages without
such a list, too many facts may be selected. The caller finds the facts that are close in meaning, with a threshold that
was fitted for the model. The browser mirrors this file; shared cases: tests/conformance/prompt.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from vademecum.model.schema.derived_ids import is_fact_id

Tokenize = Callable[[str], Sequence[str]]

# Common function words of English, German, French, Spanish, Italian, Portuguese and Dutch, folded by `tokenize.fold`.
# Words that are also English nouns (Spanish `son`, German `hat`) are left out.
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
COMMON_WORDS = frozenset(_COMMON.split())
_CAMEL_CASE = re.compile("([a-z0-9])([A-Z])")


class Fact(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a fact that determine its relevance and rank."""

    id: str
    key: str
    value: str
    updated_at: str
    confirmed: bool
    confidence: float
    source_removed: bool

    @property
    def is_proposal(self) -> bool:
        """Return whether the fact was extracted from a conversation and is not confirmed."""
        return not self.confirmed and is_fact_id(self.id)


def distinctive_terms(text: str, tokenize: Tokenize) -> set[str]:
    """Return the terms of a text without common words and single ASCII characters."""
    terms = {term for term in tokenize(_CAMEL_CASE.sub(r"\1 \2", text)) if term not in COMMON_WORDS}
    return {term for term in terms if len(term) > 1 or not term.isascii()}


def select_relevant(
    question: str, facts: Iterable[Fact], tokenize: Tokenize, close: Collection[str] = ()
) -> list[tuple[int, Fact]]:
    """Return the relevant facts, each with the number of terms that it shares with the question.

    `close`: the ids of facts that are close in meaning.
    """
    question_terms = distinctive_terms(question, tokenize)
    counted = (
        (len(question_terms & distinctive_terms(f"{fact.key} {fact.value}", tokenize)), fact)
        for fact in facts
        if not (fact.source_removed or fact.is_proposal)
    )
    return [(shared, fact) for shared, fact in counted if shared or fact.id in close]


def sort_by_usefulness(counted: Iterable[tuple[int, Fact]]) -> list[tuple[int, Fact]]:
    """Sort facts: confirmed ones first, then by most shared terms, highest confidence and latest change."""
    ranked = sorted(counted, key=lambda pair: pair[1].id)
    ranked.sort(key=lambda pair: pair[1].updated_at, reverse=True)
    ranked.sort(key=lambda pair: (not pair[1].confirmed, -pair[0], -pair[1].confidence))
    return ranked
