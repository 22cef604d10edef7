"""When a new memory says again what an old one says, and so takes its place.

The exact form decides first. Else the nearest old one, if it is as near as the threshold that was fitted for the
model, and nothing speaks against it: another subject, name, number, unit, date, quotation or negation, a word
put in another's place, or words that each of the two has for itself. All of these abstain in doubt: a memory too many is found next to the other one, a lost
fact is not found at all. A script without capital letters has no names to compare, so there only the exact form counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile

import msgspec

from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import fold, stem

WORDS_MAX = 200  # of a longer text only the exact form is looked for


SAYS_LESS = 0.75  # of the old one's words: what is shorter than that may leave something out


class Near(msgspec.Struct, frozen=True):
    """An old memory of the same scope, and its cosine to the new one."""

    id: str
    text: str
    cosine: float


def same_form(text: str) -> str:
    """Equal for texts that differ in nothing but case, blanks and the mark at their end."""
    return " ".join(normalize(text).casefold().split()).rstrip(" .。!！")


def superseded(text: str, near: Sequence[Near], threshold: float | None) -> str | None:
    """The id of the memory that `text` takes the place of: the nearest that it repeats. Without a threshold, none."""
    if threshold is None:
        return None
    best = sorted((one for one in near if one.cosine >= threshold), key=lambda one: (-one.cosine, one.id))
    return next((one.id for one in best if may_repeat(text, one.text)), None)


def may_repeat(new: str, old: str) -> bool:
    """Whether nothing in the two texts speaks against their saying the same."""
    ours, theirs = _read(new), _read(old)
    if ours is None or theirs is None or ours.firm != theirs.firm:
        return False
    if len(ours.words) < SAYS_LESS * len(theirs.words):
        return False
    return not _replaced(ours.words, theirs.words) and _goes_through(ours.words, theirs.words)


# -- what must be the same --------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[#$€£¥+-]?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th)?[%°]?|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\w\s]")
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]{1,500})[\"“”„«»]")
_NOT = re.compile(r"n['’]t$")
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
# Words that say how others hang together and may stand in one of two texts only, as they are after `stem`.
LINKS = POSSESSIVES | _set("of with von mit de di da do van av z с")
# What turns a statement into its opposite: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish,
# Polish, Russian. (English) words that end something do so too.
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


class _Firm(msgspec.Struct, frozen=True):
    """What two texts that say the same have in common to the letter."""

    subject: tuple[str, ...]
    names: tuple[str, ...]
    numbers: tuple[str, ...]
    times: tuple[str, ...]
    negated: tuple[str, ...]
    quotes: tuple[str, ...]
    asks: bool


class _Reading(msgspec.Struct, frozen=True):
    firm: _Firm
    words: list[str]


def _read(text: str) -> _Reading | None:
    """A text taken apart; None where its subject cannot be told, or it is long."""
    text = normalize(text)
    tokens = _TOKEN.findall(text[: WORDS_MAX * 40])
    words = [_plain(token) for token in tokens if token[0].isalpha()]
    subject = _subject(tokens)
    if not words or len(tokens) > WORDS_MAX or len(text) > WORDS_MAX * 40 or subject is None:
        return None
    times = tuple(sorted(word for word in words if word in TIMES))
    quotes = tuple(sorted(fold(found) for found in _QUOTED.findall(text)))
    firm = _Firm(subject, _names(tokens), _numbers(tokens), times, _negated(words), quotes, "?" in tokens)
    return _Reading(firm, [stem(_CONTRACTED.sub("", word)) for word in words if word not in ARTICLES])


def _plain(token: str) -> str:
    return fold(token).replace("’", "'")


def _subject(tokens: Sequence[str]) -> tuple[str, ...] | None:
    """The first words, to the first that is neither article nor possessive. None in a script without capitals."""
    words = [token for token in tokens if token[0].isalpha() and _plain(token) not in ARTICLES]
    if not words or any(word[0].lower() == word[0].upper() for word in words):
        return None
    owners = list(takewhile(_is_possessive, words))
    return tuple(_plain(word) for word in words[: len(owners) + 1])


def _is_possessive(word: str) -> bool:
    return _plain(word) in POSSESSIVES or _plain(word).endswith("'s")


def _names(tokens: Sequence[str]) -> tuple[str, ...]:
    """Words with a capital letter that do not begin a sentence, in order: who does what to whom."""
    followed = zip([".", *tokens], tokens, strict=False)
    named = (token for before, token in followed if token[0].isupper() and before not in (".", "!", "?", ":"))
    plain = (_CONTRACTED.sub("", _plain(name)) for name in named)
    return tuple(name for name in plain if name != "i")


def _numbers(tokens: Sequence[str]) -> tuple[str, ...]:
    """Every number, each one of digits with the word behind it, which may be its unit."""
    followed = zip(tokens, [*tokens[1:], ""], strict=True)
    digits = [f"{fold(token)} {_plain(unit)}" for token, unit in followed if any(c.isdigit() for c in token)]
    said = [word for word in map(_plain, tokens) if word in NUMBERS]
    return tuple(sorted([*digits, *said]))


def _negated(words: Sequence[str]) -> tuple[str, ...]:
    """The word behind each negation: it is not the same who is not meant, or what."""
    followed = zip(words, [*words[1:], ""], strict=True)
    return tuple(sorted(stem(after) for word, after in followed if word in NEGATIONS or _NOT.search(word)))


# -- what must not have happened --------------------------------------------------------------------------------


def _replaced(ours: list[str], theirs: list[str]) -> bool:
    """Whether a word stands in the place of another: "likes tea", "dislikes tea". No list of opposites is long enough."""
    changes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    return any(kind == "replace" for kind, *_ in changes)


def _goes_through(ours: list[str], theirs: list[str]) -> bool:
    """Whether one of them has all that the other says, in the same order: else each says something that the other does
    not, or the same words say who bit whom."""
    shorter, longer = sorted(
        ([word for word in words if word not in LINKS] for words in (ours, theirs)), key=len
    )
    left = iter(longer)
    return all(word in left for word in shorter)
