"""Detect an encoding: decoded with the right encoding, the text has the letters of a known language.

General statistics fail for a sentence with few accented letters, and mistake even long Western European text for
Eastern European text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set

# Encodings and non-ASCII letters of Latin-script languages. If several match equally well, the first is used.
_ALPHABETS = (
    ("cp1252", "äöüßéà"),
    ("cp1252", "àâæçéèêëîïôœùûüÿ"),
    ("cp1252", "áéíïóúüñçªº"),
    ("cp1252", "áàâãçéêíóôõúüªº"),
    ("cp1252", "àèéìòùî"),
    ("cp1252", "äáàâéèêëïíîóöôüúû"),
    ("cp1252", "åäöéàü"),
    ("cp1252", "æøåéèêóòôöäü"),
    ("cp1252", "áðéíóúýþæö"),
    ("cp1250", "ąćęłńóśźż"),
    ("cp1250", "áäčďéěíĺľňóôŕřšťúůýž"),
    ("cp1250", "áéíóöőúüű"),
    ("cp1250", "čćđšž"),
    ("cp1254", "çğıİöşüâîû"),
)
# Encodings and letters of languages in non-Latin scripts, the most frequent letter first.
_SCRIPTS = (
    (("cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic"), "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    (("cp1251", "koi8-u"), "оаинтіевркслудмпязьбгйчхжїцєшюфщґ"),
    (("cp1253", "iso8859-7"), "αοιετσνηυρπκμλςίωάγόδέχθύήφβώξζψϊϋΐΰ"),
    (("cp1255",), "יולהאמרתבשןנםכדחעקפטגסזצךףץ"),
    (("cp1256", "iso8859-6"), "اليمونرتبةعدسفهكقحجشطصخأإذىءثزضغظئؤآ"),
    (("cp874",), "านรกเองยมวลีดท่ต้ัสะปคิบขหุแไ์ใจชผโถพธำ็ซูศณฐึษญภ๊ฎฏฉฝฟฆ๋ฬืๆฯ"),
)
# Encodings of DOS, Mac OS and Unix for the languages in _ALPHABETS. These encodings are tried only if no Windows
# encoding matches.
_OLDER = [
    [(older, letters.strip("ªº")) for encoding, letters in _ALPHABETS if encoding == windows]
    for windows, older in (
        ("cp1252", "cp850"),
        ("cp1252", "mac-roman"),
        ("cp1250", "cp852"),
        ("cp1250", "iso8859-2"),
    )
]
_OLDER_SIGNS = set("«»¿¡°§£½")  # no other signs, because their bytes are letters in another encoding
_KANA = re.compile("[\u3041-\u30ff]")
_SIGNS = set("\u00a0\u00ad€„“”‘’…–—•‹›«»¿¡°§©®™·´²³½¼¾×±£")
_FOREIGN = re.compile(rb"[\xa1-\xff]{4,}")  # no Latin-script language has so many non-ASCII letters in a row
_CAPITAL_WITHIN = re.compile("[а-яёіїєґα-ωά-ώ][А-ЯЁІЇЄҐΑ-ΩΆ-Ώ]")
LIKELY = 0.55  # in the right encoding, words have a likelihood above 0.65; in a wrong one, below 0.4


def detect_by_letters(data: bytes, *, is_plain: bool) -> str | None:
    """Return the encoding, or None if no encoding matches.

    If no encoding of Windows matches and `is_plain` is true, which means that the data has no control characters, the
    encodings of DOS, Mac OS and Unix are tried. If several of these match, return None.
    """
    encoding = _by_alphabet(data, _ALPHABETS, _SIGNS) or _by_script(data)
    if encoding is not None or not is_plain:
        return encoding
    candidates = {_by_alphabet(data, alphabets, _OLDER_SIGNS) for alphabets in _OLDER} - {None}
    return candidates.pop() if len(candidates) == 1 else None


def _by_alphabet(data: bytes, alphabets: Iterable[tuple[str, str]], signs: Set[str]) -> str | None:
    """Return the encoding in which the data has only the letters of one Latin-script language, or None."""
    high = Counter(byte for byte in data if byte > 0x7F)
    few = high.total() // 50  # tolerate 2 % foreign letters, for example in names
    if sum(map(len, _FOREIGN.findall(data))) > few:
        return None

    def count_foreign(encoding: str, alphabet: str) -> int:
        expected = signs | set(alphabet + alphabet.upper())
        return sum(n for byte, n in high.items() if bytes([byte]).decode(encoding, "replace") not in expected)

    encoding, foreign = min(((a[0], count_foreign(*a)) for a in alphabets), key=lambda pair: pair[1])
    return encoding if foreign <= few else None


def _by_script(data: bytes) -> str | None:
    """Return the encoding in which the data is text of a non-Latin language, or None.

    In a wrong encoding, the bytes become rare letters or capital letters inside words.
    """
    high = sum(byte > 0x7F for byte in data)
    if sum(map(len, _FOREIGN.findall(data))) * 2 < high:
        return None
    japanese = data.decode("euc-jp", "replace")
    is_whole = japanese.count("\ufffd") < 2  # the sample may end within a letter
    # More than a third of the letters are kana: each letter has two high bytes, hence the factor 6.
    if is_whole and len(_KANA.findall(japanese)) * 6 > high:
        return "euc-jp"
    best, best_encoding = LIKELY, None
    for encodings, letters in _SCRIPTS:
        for encoding in encodings:
            likelihood = _likelihood(data.decode(encoding, "replace"), letters)
            if likelihood > best:
                best, best_encoding = likelihood, encoding
    return best_encoding


def _likelihood(text: str, letters: str) -> float:
    """Return how well the non-ASCII letters fit the language: 1 at best, and less than 0 for many foreign characters.

    `letters` are the language's letters, most frequent first. A frequent letter has a higher value than a rare one.
    """
    value = {letter: 1 - at / len(letters) for at, letter in enumerate(letters)}
    non_ascii = Counter(c for c in text if c > "\x7f")
    score = sum(n * value.get(c.lower(), 0 if c in _SIGNS else -1) for c, n in non_ascii.items())
    return (score - 2 * len(_CAPITAL_WITHIN.findall(text))) / max(1, non_ascii.total())
