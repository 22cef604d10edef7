"""Detect secrets by their names, such as `password: …` or "the PIN is …", in several languages.

Also detect card numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from vademecum.model.secrets.hinted_regex import Pattern, Span

# Maps hints (`hinted_regex`) to names of secrets. Words with other meanings, such as "key", count only as part of a
# longer expression.
_NAMES = {
    "pass": r"(?:pg|ssh)?pass(?:word|wort|code|phrase|wd|w)|sshpass|(?:user|root|db|vault|become|sudo)_?pass|mot de passe|palavra-passe|passord",
    "pwd": r"pwd",
    "key": r"(?:api|access|secret|private|auth|encryption|signing|master|account)[ _-]?key(?:_base)?",
    "token": r"(?:(?:access|auth|refresh|id|bot|api)[ _-]?)?token",
    "secret": r"(?:(?:api|client)[ _-]?)?secret",
    "credential": r"credentials?",
    "recovery": r"recovery[ _-]?codes?",
    "seed": r"seed[ _-]?phrase",
    "kennwort": r"kennwort",
    "zugangscode": r"zugangscode",
    "contrase": r"contrase(?:ñ|n)a",
    "clave": r"clave",
    "senha": r"senha",
    "wachtwoord": r"wachtwoord",
    "lösenord": r"lösenord",
    "adgangskode": r"adgangskode",
    "hasł": r"hasło",
    "hasl": r"haslo",
    "пар": r"парол[ьяюе]м?",
    "parola": r"parola",
    "şifre": r"şifre",
    "salasana": r"salasana",
    "heslo": r"heslo",
    "jelszó": r"jelszó",
    "ωδ": r"κωδικός",
    "סיסמה": r"סיסמה",
    "كلمة": r"كلمة (?:المرور|السر)",
    "पासवर्ड": r"पासवर्ड",
    "密码": r"密码",
    "密碼": r"密碼",
    "口令": r"口令",
    "パスワード": r"パスワード",
    "비밀번호": r"비밀번호",
}
_NAME = "|".join(_NAMES.values())
_PIN = r"(?:pin|cvv|cvc|otp|tan)(?:[ -](?:code|number|nummer))?"
_PINS = ("pin", "cvv", "cvc", "otp", "tan")
# The separator between the name and the secret: a sign, or the word for "is".
_SIGN = r"[\"'`*]{0,3}\s{0,3}(?::=|=>|->|[=:：→])\s{0,3}"
_CHANGED = r"\s{1,3}(?:(?:is|was|has\sbeen)\s)?(?:changed|set|reset)\sto:?\s{1,3}"
_IS = (
    _CHANGED
    + r"|\s{1,3}(?:is|was|are|ist|war|lautet|est|était|es|era|é|è|jest|это|—|–|-)(?:\s{1,3}(?:now|jetzt))?:?\s{1,3}|\s{0,3}(?:是|は|为|為|은|는|이)\s{0,3}"
)
_WORD_OF = r"\s[^\s.,;:!?=]{1,30}"
_OF = rf"(?:\s(?:of|for|to|at|on|von|vom|für|zu|zum|de|du|del|da|do|pour|para|di|van|voor){_WORD_OF}(?:{_WORD_OF}(?:{_WORD_OF})?)??)?"
_BETWEEN = f"{_OF}(?:(?P<sign>{_SIGN})|(?P<is>{_IS}))"
_VALUE = r"(?P<quote>[\"'`“”„«]{0,3})(?P<secret>[^\s\"'`“”„«»]{1,200})"
# A name begins after a character that is no letter or digit: `DB_PASSWORD` and `my-token` match, `mytoken` does not. The
# lookahead is for speed: it skips positions where no name can begin.
_LEFT = r"(?<![^\W_])(?=[^\W_])"
# Names that also match at the end of a longer word, as in `dbpassword` and `Adminpasswort`. For "secret" the word must
# be in camel case, as in `jwtSecret`.
_ENDING = r"pass(?:word|wort|wd)|kennwort|wachtwoord|(?-i:(?<=[a-z])Secret)"
_NAMED = Pattern(
    rf"(?:(?:{_LEFT}(?:{_NAME})|{_ENDING}){_BETWEEN}|{_LEFT}(?:pass|pw){_SIGN}(?=\S{{0,40}}\d)){_VALUE}",
    re.IGNORECASE,
    (*_NAMES, "pw"),
)
# "I set the password of the router to …". Without such a verb, the words after "to" more often state a purpose.
_SET = Pattern(
    rf"{_LEFT}(?:set|change|reset)(?:{_WORD_OF}(?:{_WORD_OF})?)?\s[a-z_]{{0,20}}?pass(?:word|phrase|code){_OF}(?:(?P<sign>\s=\s)|(?P<is>\sto:?\s)){_VALUE}",
    re.IGNORECASE,
    ("pass",),
)
# A name directly followed by a secret. The secret must have letters and digits, unlike ordinary words of a sentence.
_BARE = Pattern(
    rf"{_LEFT}(?:password|passwort|passcode|kennwort|pwd)\s(?=[^\s\d]{{0,40}}\d)(?=\d{{0,40}}[^\s\d])(?P<secret>[^\s\"'`]{{6,200}})",
    re.IGNORECASE,
    ("pass", "kennwort", "pwd"),
)
_BARE_PIN = Pattern(
    rf"{_LEFT}(?:pin|cvv|cvc)\s(?P<secret>\d{{4,8}})(?![\w.,:/-]?\w)", re.IGNORECASE, ("pin", "cvv", "cvc")
)
_CARD = Pattern(r"(?<![\w.-])[3-6](?:[ -]?[0-9]){12,18}(?![\w-])", hints=("3", "4", "5", "6"))
_SENTENCE = Pattern(r"[^.!?,;:\n]{1,200}")
PHRASE_MIN, PHRASE_MAX = 4, 12  # minimum and maximum number of words of a passphrase
_NUMBERED = Pattern(
    rf"{_LEFT}{_PIN}{_BETWEEN}[\"'`]?(?P<secret>\d{{3,12}})(?![\w.,:/-]?\w)", re.IGNORECASE, _PINS
)
# The names of secrets in folded text. Matching folded text takes a third of the time of a match that ignores case.
CALLED = Pattern(f"{_NAME}|{_PIN}", hints=(*_NAMES, *_PINS))
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "„": "“", "«": "»"}
QUOTED_MAX = 200
_END = ".,;:)]}>。、，"
# Values that follow the name of a secret but are not secrets: here code and placeholders, below words about passwords.
_CODE = Pattern(
    r"[$<{\[(*%]|(?:os|process|self|settings|config|env|getenv|input|str|int|none|null|true|false|undefined|xxx)\b|\.\.\.|…",
    re.IGNORECASE,
)
_SAYINGS = (
    "a about again also always an and as at based both by case correct empty for from good hard here in incorrect "
    "invalid it just known lost mandatory missing my never no not of ok okay old on one only optional our out private "
    "public random right safe secret secure shared short so still strong that the their there this to too unique "
    "unknown up valid very weak what wrong yes you your "
    "string boolean function bytes "  # names of types, as in code
    "falsch richtig sicher nicht noch der die das ein eine zu faux correcte incorrect trop le la un une pas "
    "incorrecta correcta segura el una muy no sbagliata corretta errada correta segura uma muito verkeerd juist niet "
    "te неверный неправильный не верный слишком"
)
_NO_SECRETS = frozenset(_SAYINGS.split())


def by_name(text: str) -> Iterator[Span]:
    for found in chain(_NAMED.finditer(text), _SET.finditer(text)):
        secret = _quoted(found, text) or _without_end(found["secret"])
        if _is_value(found, secret, text[found.end() : found.end() + 2]):
            yield Span(found.start("secret"), found.start("secret") + len(secret), "password")
        elif found["is"] and (phrase := _phrase(text, found.start("secret"))):
            yield Span(found.start("secret"), found.start("secret") + len(phrase), "password")
    for found in _BARE.finditer(text):
        secret = _without_end(found["secret"])
        yield Span(found.start("secret"), found.start("secret") + len(secret), "password")
    for pattern in (_NUMBERED, _BARE_PIN):
        for found in pattern.finditer(text):
            yield Span(*found.span("secret"), "PIN")
    for found in _CARD.finditer(text):
        if _is_card([int(digit) for digit in found[0] if digit.isdigit()]):
            yield Span(*found.span(), "card number")


def _quoted(match: re.Match[str], text: str) -> str:
    """Return the secret up to its closing quote, or "" if no quote closes it on the same line."""
    start = match.start("secret")
    end = text.find(_CLOSING.get(match["quote"][-1:], "\n"), start, start + QUOTED_MAX)
    secret = text[start:end] if end > start else ""
    return "" if "\n" in secret else secret


def _phrase(text: str, start: int) -> str:
    """Return the text up to the end of the sentence if it looks like a passphrase: plain words that form no sentence.

    Otherwise return "".
    """
    rest = _SENTENCE.compiled().match(text, start)
    words = rest[0].lower().split() if rest else []
    if not PHRASE_MIN <= len(words) <= PHRASE_MAX or not all(map(_is_plain, words)):
        return ""
    makes_one = any(word in _NO_SECRETS or word.endswith(("ed", "ing")) for word in words[1:])
    return "" if makes_one or rest is None else rest[0].rstrip()


def _is_card(digits: list[int]) -> bool:
    """Return whether the digits pass the Luhn check, which one number in ten passes by chance."""
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _without_end(value: str) -> str:
    """Return the value without the punctuation that ends a sentence.

    `!` and `?` at the end belong to a password, unless the word before them is a plain word.
    """
    value = value.rstrip(_END)
    word = value.rstrip(_END + "!?")
    return word if _is_plain(word) else value


def _is_value(match: re.Match[str], secret: str, after: str) -> bool:
    """Return whether the value after the name of a secret is a secret.

    A value that is quoted or is not a plain word counts as a secret. A plain word counts only if it is assigned
    (`PASSWORD=swordfish psql`) or ends the sentence, and is not a common word about passwords ("the password is
    wrong").
    """
    if len(secret) < 4 or _CODE.compiled().match(secret) or secret.endswith("("):
        return False
    if match["quote"] or not _is_plain(secret):
        return True
    ends = match["sign"] == "=" or match["secret"] != secret or not after.strip() or after.startswith("\n")
    is_participle = match["is"] and secret.lower().endswith(("ed", "ing"))
    return ends and secret.lower() not in _NO_SECRETS and not is_participle


def _is_plain(word: str) -> bool:
    """Return whether a word has only letters, hyphens and apostrophes, with at most its first letter in upper case."""
    return word.replace("-", "").replace("'", "").replace("’", "").isalpha() and word[1:].lower() == word[1:]
