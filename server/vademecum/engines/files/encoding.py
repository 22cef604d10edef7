"""Letters out of bytes: what is marked, what is UTF-8, what is said, what a language's letters show, and then a guess."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set
from contextlib import suppress

from vademecum.engines.files.parsed import Unreadable

# The mark of UTF-32 begins with that of UTF-16, so it is asked first.
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
# What a language writes beyond ASCII. Of two that fit equally well, the first is taken.
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
# Letters of languages that write no Latin ones, the commonest first, and the encodings that they had before UTF-8.
_SCRIPTS = (
    (("cp1251", "koi8-r", "cp866", "iso8859-5", "mac-cyrillic"), "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"),
    (("cp1251", "koi8-u"), "оаинтіевркслудмпязьбгйчхжїцєшюфщґ"),
    (("cp1253", "iso8859-7"), "αοιετσνηυρπκμλςίωάγόδέχθύήφβώξζψϊϋΐΰ"),
    (("cp1255",), "יולהאמרתבשןנםכדחעקפטגסזצךףץ"),
    (("cp1256", "iso8859-6"), "اليمونرتبةعدسفهكقحجشطصخأإذىءثزضغظئؤآ"),
    (("cp874",), "านรกเองยมวลีดท่ต้ัสะปคิบขหุแไ์ใจชผโถพธำ็ซูศณฐึษญภ๊ฎฏฉฝฟฆ๋ฬืๆฯ"),
)
# Of the same languages before Windows, and on other machines: only what Windows does not explain is one of these.
_OLDER = [
    [(older, letters.strip("ªº")) for encoding, letters in _ALPHABETS if encoding == windows]
    for windows, older in (
        ("cp1252", "cp850"),
        ("cp1252", "mac-roman"),
        ("cp1250", "cp852"),
        ("cp1250", "iso8859-2"),
    )
]
_OLDER_SIGNS = set("«»¿¡°§£½")  # others are letters elsewhere
_KANA = re.compile("[\u3041-\u30ff]")
_SIGNS = set("\u00a0\u00ad€„“”‘’…–—•‹›«»¿¡°§©®™·´²³½¼¾×±£")
_FOREIGN = re.compile(rb"[\xa1-\xff]{4,}")  # no Latin script has so many accents in a row
_CAPITAL_WITHIN = re.compile("[а-яёіїєґα-ωά-ώ][А-ЯЁІЇЄҐΑ-ΩΆ-Ώ]")
LIKELY = 0.55  # words are above 0.65, and the same bytes in another encoding below 0.4
SAMPLE = 1_000_000
# What a terminal was told: a letter struck over another (how man pages write bold and underlined), a bell, the end of
# an old file. ESC and what ends lines are no such marks.
_STRUCK_OVER = re.compile(r"[^\n\x08]\x08")
_MARK = re.compile(r"[\0-\x07\x0e-\x1a]")
_MARK_BYTE = re.compile(rb"[\0-\x07\x0e-\x1a]")
MARKS_SHARE = 0.02
# UTF-16 that does not say so is the writing of one of these families, with Latin letters and signs in it.
_WIDE_SAMPLE = 100_000
_LATIN = "\t\n\f\r -~\xa0-\u024f\u0300-\u036f\u1e00-\u1eff\u2000-\u2bff\ufeff\U0001f000-\U0001faff"
_WIDE = [
    re.compile(f"[^{_LATIN}{letters}]")
    for letters in (
        "\u0370-\u058f\u1f00-\u1fff",  # Greek, Cyrillic, Armenian
        "\u0590-\u06ff\ufb1d-\ufdff\ufe70-\ufefc",  # Hebrew, Arabic
        "\u0900-\u10ff",  # India, South-East Asia, Georgia
        "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef",  # China, Japan, Korea
    )
]
_SELDOM = re.compile("[\u0100-\u024f\u0300-\u036f\u2000-\u2bff]")  # no text is made of them
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_NO_IDEOGRAPH = re.compile("[\u3000-\u30ff\uac00-\ud7a3\uff00-\uffef]")
WIDE_MIN = 8  # letters; fewer show nothing
_JAPANESE = re.compile(rb"\x1b\$[@B]")  # of ISO-2022-JP, as mail is: two letters of ASCII are one of its own
_NAMED = re.compile(rb"(?:encoding|charset|coding)[:= ]{1,10}[\"']?([a-z0-9_-]+)", re.I)
# Names of the web that Python does not know.
_ENCODINGS = {
    "windows-874": "cp874",
    "dos-874": "cp874",
    "windows-949": "cp949",
    "iso-8859-8-i": "iso8859-8",
    "koi8-ru": "koi8-u",
    "x-mac-roman": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-euc-jp": "euc-jp",
    "x-gbk": "gbk",
    "x-x-big5": "big5",
    **{f"x-cp125{n}": f"cp125{n}" for n in range(9)},
}


def decode(data: bytes) -> str:
    """Text in whatever encoding. Raises Unreadable for bytes that are none.

    A log with a stray control mark is a text: each becomes a blank. Where there are many it is none.
    """
    text = _marked(data)
    if text is None:
        text = _unmarked(data)
    plain, marks = _MARK.subn(" ", _STRUCK_OVER.sub("", text))
    if marks > max(1, len(text) * MARKS_SHARE):
        raise Unreadable("UNSUPPORTED_TYPE")
    return plain.replace("\b", " ")


def _marked(data: bytes) -> str | None:
    promised = [encoding for mark, encoding in _MARKS if data.startswith(mark)]
    for encoding in promised:
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    if promised:
        raise Unreadable("DAMAGED")
    return None


def _unmarked(data: bytes) -> str:
    if _JAPANESE.search(data):
        with suppress(UnicodeDecodeError):
            return data.decode("iso2022_jp_ext")
    with suppress(UnicodeDecodeError):
        text = data.decode()
        many = text.count("\0") > max(1, len(text) * MARKS_SHARE)
        return (many and _wide(data)) or text
    if b"\0" in data:
        wide = _wide(data)
        if wide is not None:
            return wide
        # Sound, drawings and programs would be guessed to be some language.
        raise Unreadable("UNSUPPORTED_TYPE")
    return _guessed(data)


def _wide(data: bytes) -> str | None:
    """UTF-16 that does not say so. Its letters are of one part of Unicode; the other way round they are of many, or of none
    that belong together."""
    found: dict[int, str] = {}
    for encoding, half in (("utf-16-be", 0), ("utf-16-le", 1)):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if len(text) >= WIDE_MIN and _is_writing(text[:_WIDE_SAMPLE]):
                found[len(set(data[half : 2 * _WIDE_SAMPLE : 2]))] = text
    return found[min(found)] if found else None


def _is_writing(text: str) -> bool:
    """Two letters of ASCII make an ideograph, but hardly one of the signs that stand between real ones; and the halves of
    these are not of ASCII alone."""
    few = len(text) // 50
    if (
        len(_SELDOM.findall(text)) * 2 > len(text)
        or min(len(strangers.findall(text)) for strangers in _WIDE) > few
    ):
        return False
    ideographs = _IDEOGRAPH.findall(text)
    if len(ideographs) <= few:
        return True
    others = len(_NO_IDEOGRAPH.findall(text))
    return others * 50 >= len(text) and sum(ord(sign) & 0x80 > 0 for sign in ideographs) * 4 >= len(
        ideographs
    )


def _guessed(data: bytes) -> str:
    # Most files never come here, so their readers do not wait for the statistics of languages to be loaded.
    from charset_normalizer import from_bytes
    from charset_normalizer.utils import any_specified_encoding

    encoding = next((known for name in _NAMED.findall(data[:8192]) if (known := _known(name))), None)
    if encoding is None and any_specified_encoding(data) in (None, "utf_8"):
        text = data.decode("utf-8", "replace")
        if _nearly(text):
            return text
        sample = data[:SAMPLE]
        encoding = _by_letters(sample, _ALPHABETS, _SIGNS) or _by_script(sample)
        if encoding is None and not _MARK_BYTE.search(sample):
            told = {_by_letters(sample, alphabets, _OLDER_SIGNS) for alphabets in _OLDER} - {None}
            encoding = told.pop() if len(told) == 1 else None  # of several, statistics may tell
    if encoding is None:
        best = from_bytes(data[:SAMPLE]).best()
        if best is None:
            raise Unreadable("UNSUPPORTED_TYPE")
        encoding = best.encoding
    return data.decode(encoding, "replace")


def _known(name: bytes) -> str | None:
    return _ENCODINGS.get(name.decode("ascii").lower())


def _nearly(text: str) -> bool:
    """UTF-8 with a few broken bytes. Other encodings make hardly a sound sequence by chance, and many broken ones."""
    broken = text.count("\ufffd")
    sound = sum(1 for c in text if c > "\x7f") - broken
    return broken * 2 <= sound


def _by_letters(data: bytes, alphabets: Iterable[tuple[str, str]], signs: Set[str]) -> str | None:
    """The encoding in which these are the letters of one language that writes Latin ones, or None.

    Statistics need more than the few accents of a sentence, and take Western text for Eastern even when it is long.
    """
    high = Counter(byte for byte in data if byte > 0x7F)
    few = high.total() // 50  # a foreign name does not make a text foreign
    if sum(map(len, _FOREIGN.findall(data))) > few:
        return None

    def strange(encoding: str, alphabet: str) -> int:
        known = signs | set(alphabet + alphabet.upper())
        return sum(n for byte, n in high.items() if bytes([byte]).decode(encoding, "replace") not in known)

    found, strangers = min(((a[0], strange(*a)) for a in alphabets), key=lambda pair: pair[1])
    return found if strangers <= few else None


def _by_script(data: bytes) -> str | None:
    """The encoding in which these are words of a language that writes no Latin letters, or None.

    In another one the same bytes are rare letters, or capitals within words.
    """
    high = sum(byte > 0x7F for byte in data)
    if sum(map(len, _FOREIGN.findall(data))) * 2 < high:
        return None
    japanese = data.decode("euc-jp", "replace")
    is_whole = japanese.count("\ufffd") < 2  # the sample may end within a letter
    if is_whole and len(_KANA.findall(japanese)) * 6 > high:  # two bytes a letter, and a third of the letters
        return "euc-jp"
    best, found = LIKELY, None
    for encodings, letters in _SCRIPTS:
        for encoding in encodings:
            likely = _likeness(data.decode(encoding, "replace"), letters)
            if likely > best:
                best, found = likely, encoding
    return found


def _likeness(text: str, letters: str) -> float:
    """How common the letters beyond ASCII are, 1 for the commonest alone; less for each that is none of them."""
    value = {letter: 1 - at / len(letters) for at, letter in enumerate(letters)}
    beyond = Counter(c for c in text if c > "\x7f")
    worth = sum(n * value.get(c.lower(), 0 if c in _SIGNS else -1) for c, n in beyond.items())
    return (worth - 2 * len(_CAPITAL_WITHIN.findall(text))) / max(1, beyond.total())
