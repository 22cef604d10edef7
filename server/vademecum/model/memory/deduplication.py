"""Decide whether a new memory repeats an old one and replaces it.

Two memories with the same exact form are duplicates. Otherwise the nearest old memory is replaced if its similarity
reaches the threshold that was fitted for the model, and if the two do not differ in subject, names, numbers, units,
dates, quotations or negations. No word may replace another, and only a few function words may be in one of the two
texts alone: any other word can change what a statement says ("has the key", "has lost the key"). In doubt, both
memories are kept: a duplicate does little harm, but a replaced statement would no longer be found. In a script without
capital letters, names cannot be recognized, so only the exact form is compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile

import msgspec

from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import fold, stem

WORDS_MAX = 200  # the maximum number of words; of longer texts, only the exact form is compared


class SimilarMemory(msgspec.Struct, frozen=True):
    """An old memory of the same scope and its cosine similarity to the new one."""

    id: str
    text: str
    cosine: float


def exact_form(text: str) -> str:
    """Return a form that is equal for texts that differ only in case, whitespace and final punctuation."""
    return " ".join(normalize(text).casefold().split()).rstrip(" .。!！")


def find_superseded(text: str, near: Sequence[SimilarMemory], threshold: float | None) -> str | None:
    """Return the id of the nearest memory that `text` repeats, or None. Without a threshold the result is None."""
    if threshold is None:
        return None
    best = sorted((one for one in near if one.cosine >= threshold), key=lambda one: (-one.cosine, one.id))
    return next((one.id for one in best if may_be_duplicate(text, one.text)), None)


def may_be_duplicate(new: str, old: str) -> bool:
    """Return whether two texts may have the same meaning, because no relevant difference between them was found."""
    new_text, old_text = _analyze(new), _analyze(old)
    if new_text is None or old_text is None or new_text.invariants != old_text.invariants:
        return False
    return not _has_replacement(new_text.words, old_text.words) and _content_words(
        new_text.words
    ) == _content_words(old_text.words)


_TOKEN = re.compile(r"[#$€£¥+-]?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th)?[%°]?|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\w\s]")
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]{1,500})[\"“”„«»]")
_CONTRACTED_NOT = re.compile(r"n['’]t$")
_CONTRACTED = re.compile(r"['’](?:s|m|re|ve|d|ll)$")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ARTICLES = _set(
    "the a an der die das ein eine le la les l un une el los las una il lo gli i o os as um uma de het een"
)
POSSESSIVES = _set(
    "my your his her its our their mein meine dein deine sein seine ihr ihre unser unsere mon ma mes ton ta tes son sa "
    "ses notre nos votre vos leur leurs mi mis tu tus su sus nuestro nuestra mio mia tuo tua suo sua nostro nostra meu "
    "minha seu nosso nossa mijn jouw zijn haar onze hun min mitt din ditt hans hennes vår mój moja moje twój twoja jego "
    "jej nasz мой моя мое твой твоя его ее их наш наша"
)
# Stems of words that may be missing in one of the two texts, because they do not change what a statement says.
FUNCTION_WORDS = frozenset(
    stem(word)
    for word in POSSESSIVES
    | _set(
        "of with von mit de di da do van av z с is are am has have had that which who she he they it ist sind hat haben "
        "dass welche welcher est sont ont que qui elle ils elles es son esta estan ha han ella ellos"
    )
)
# Words that negate a statement: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Polish, Russian.
# The English words include words for ending something, such as "quit".
NEGATIONS = _set(
    "not no never none nobody nothing neither nor without cannot hardly stopped stops quit former formerly except unless "
    "anymore refuses refused lacks failed nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder "
    "ne n pas jamais rien personne aucun aucune sans ni non nunca jamas nada nadie ningun ninguno ninguna sin tampoco "
    "mai niente nulla nessun nessuno nessuna senza nao ninguem nenhum nenhuma sem nem niet geen nooit niemand niets zonder "
    "inte aldrig ingen inget inga utan ej nie nigdy nikt nic zaden zadna bez ani не нет ни никогда никто ничего без"
)
NUMBERS = _set(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half "
    "once twice first second third fourth fifth both several few many most all every each some only "
    "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf zwanzig hundert tausend erste zweite dritte "
    "deux trois quatre cinq sept huit neuf dix onze douze vingt cent mille dos tres cuatro cinco seis siete ocho nueve diez "
    "once doce veinte cien mil due tre quattro cinque sei sette otto nove dieci undici dodici venti cento dois duas tres "
    "quatro sete oito dez vinte twee drie vijf zes zeven acht negen tien twaalf twintig honderd duizend tva fyra fem sju "
    "atta nio tio dwa dwie trzy cztery piec szesc siedem osiem dziewiec dziesiec sto tysiac один одна два две три четыре "
    "пять шесть семь восемь девять десять сто тысяча"
)
TIMES = _set(
    "today tomorrow yesterday tonight morning afternoon evening night day days week weeks weekend month months year years "
    "hour hours minute minutes last next ago before after later recently currently now soon daily weekly monthly yearly "
    "always often sometimes rarely spring summer autumn winter january february march april may june july august september "
    "october november december monday tuesday wednesday thursday friday saturday sunday "
    "heute morgen gestern woche monat jahr vor nach montag dienstag mittwoch donnerstag freitag samstag sonntag januar "
    "februar marz mai juni juli oktober dezember aujourd hier demain semaine mois annee avant apres lundi mardi mercredi "
    "jeudi vendredi samedi dimanche janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre hoy "
    "manana ayer semana mes ano antes despues lunes martes miercoles jueves viernes sabado domingo enero febrero marzo abril "
    "mayo junio julio agosto septiembre octubre noviembre diciembre oggi domani ieri settimana mese anno prima dopo lunedi "
    "martedi mercoledi giovedi venerdi domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre hoje "
    "amanha ontem depois segunda terca quarta quinta sexta vandaag morgen gisteren maandag dinsdag woensdag donderdag vrijdag "
    "zaterdag zondag idag imorgon igar mandag tisdag onsdag torsdag fredag lordag sondag dzis dzisiaj jutro wczoraj "
    "poniedzialek wtorek sroda czwartek piatek sobota niedziela сегодня завтра вчера понедельник вторник среда четверг "
    "пятница суббота воскресенье"
)


class _Invariants(msgspec.Struct, frozen=True):
    """The features that two texts with the same meaning share exactly."""

    subject: tuple[str, ...]
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    times: tuple[str, ...]
    negated: tuple[str, ...]
    quotes: tuple[str, ...]
    asks: bool


class _Analysis(msgspec.Struct, frozen=True):
    invariants: _Invariants
    words: list[str]


def _analyze(text: str) -> _Analysis | None:
    """Analyze a text. Return None if it is too long, has no words or has no recognizable subject."""
    text = normalize(text)
    tokens = _TOKEN.findall(text[: WORDS_MAX * 40])
    words = [_fold_word(token) for token in tokens if token[0].isalpha()]
    subject = _subject(tokens)
    if not words or len(tokens) > WORDS_MAX or len(text) > WORDS_MAX * 40 or subject is None:
        return None
    times = tuple(sorted(word for word in words if word in TIMES))
    quotes = tuple(sorted(fold(found) for found in _QUOTED.findall(text)))
    invariants = _Invariants(
        subject, _names(tokens), _numbers(tokens), times, _negated(words), quotes, "?" in tokens
    )
    return _Analysis(invariants, [stem(_CONTRACTED.sub("", word)) for word in words if word not in ARTICLES])


def _fold_word(token: str) -> str:
    return fold(token).replace("’", "'")


def _subject(tokens: Sequence[str]) -> tuple[str, ...] | None:
    """Return the subject of a text, or None in a script without capital letters.

    The subject is the words up to the first one that is neither an article nor a possessive.
    """
    words = [token for token in tokens if token[0].isalpha() and _fold_word(token) not in ARTICLES]
    if not words or any(word[0].lower() == word[0].upper() for word in words):
        return None
    owners = list(takewhile(_is_possessive, words))
    return tuple(_fold_word(word) for word in words[: len(owners) + 1])


def _is_possessive(word: str) -> bool:
    return _fold_word(word) in POSSESSIVES or _fold_word(word).endswith("'s")


def _names(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the capitalized words that do not begin a sentence. Their order shows who does what to whom."""
    followed = zip([".", *tokens], tokens, strict=False)
    capitalized = (
        token for before, token in followed if token[0].isupper() and before not in (".", "!", "?", ":")
    )
    plain = (_CONTRACTED.sub("", _fold_word(name)) for name in capitalized)
    return tuple(name for name in plain if name != "i")


def _numbers(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return all numbers, sorted. Digits are returned with the following word, which may be the unit."""
    followed = zip(tokens, [*tokens[1:], ""], strict=True)
    digits = [
        f"{fold(token)} {_fold_word(unit)}" for token, unit in followed if any(c.isdigit() for c in token)
    ]
    number_words = [word for word in map(_fold_word, tokens) if word in NUMBERS]
    return tuple(sorted([*digits, *number_words]))


def _negated(words: Sequence[str]) -> tuple[str, ...]:
    """Return the word after each negation, because it matters what is negated."""
    followed = zip(words, [*words[1:], ""], strict=True)
    return tuple(
        sorted(stem(after) for word, after in followed if word in NEGATIONS or _CONTRACTED_NOT.search(word))
    )


def _has_replacement(new_text: list[str], old_text: list[str]) -> bool:
    """Return whether a word of one text replaces a word of the other, as in "likes tea" and "dislikes tea".

    Any replacement counts, because no list of opposites is complete.
    """
    changes = SequenceMatcher(None, new_text, old_text, autojunk=False).get_opcodes()
    return any(kind == "replace" for kind, *_ in changes)


def _content_words(words: list[str]) -> list[str]:
    """Return the words without function words, in order, because the order shows who does what to whom."""
    return [word for word in words if word not in FUNCTION_WORDS]
