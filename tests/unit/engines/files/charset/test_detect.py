"""Text in common encodings is decoded; other data is refused."""

import pytest

from unit.engines.files.file_reader import read, refused, text_of

GERMAN = "Die Größe der Wohnung beträgt fünfzig Quadratmeter. Über die Höhe der Miete müssen wir später sprechen.\r\n"
JAPANESE = "契約は五月に終わります。家賃は毎月末に支払うものとします。敷金は二ヶ月分です。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-8"),
        (GERMAN, "utf-8-sig"),
        (GERMAN, "utf-16"),
        (GERMAN, "latin-1"),
        (GERMAN * 50, "latin-1"),
        (JAPANESE, "shift-jis"),
        (JAPANESE * 50, "shift-jis"),
        (JAPANESE, "utf-8"),
        (JAPANESE, "iso-2022-jp"),
        ("Re: lease\n" + JAPANESE * 50, "iso-2022-jp"),
        ("Договор заканчивается в мае.", "windows-1251"),
    ],
)
def test_text_is_decoded_with_its_encoding(text, encoding):
    assert text_of(text.encode(encoding)) == text


def test_big_endian_utf16_is_decoded():
    assert text_of(b"\xfe\xff" + GERMAN.encode("utf-16-be")) == GERMAN


@pytest.mark.parametrize(
    "sentence",
    [
        "Das Protokoll der Sitzung vom 3. März wurde einstimmig angenommen, Herr Müller dankt allen.",
        "El señor Muñoz vive en España desde hace años.",
        "Le contrat est résilié à la fin du mois.",
        "Göteborg och Malmö ligger i Sverige.",
    ],
)
def test_one_latin1_sentence_is_detected(sentence):
    assert text_of(sentence.encode("latin-1")) == sentence


@pytest.mark.parametrize(
    ("sentence", "encoding"),
    [
        ("Smlouva končí v květnu.", "cp1250"),
        ("Umowa kończy się w maju.", "cp1250"),
        ("Köszönjük a levelet, később válaszolunk.", "cp1250"),
        ("Kira her ayın başında ödenir, teşekkür ederiz.", "cp1254"),
        ("int rent = 500; // Плата вносится", "cp1251"),
        ("int rent = 500; // 家賃は毎月", "shift-jis"),
    ],
)
def test_text_in_other_alphabets_is_not_decoded_as_latin1(sentence, encoding):
    assert text_of(sentence.encode(encoding)) == sentence


def test_foreign_name_does_not_change_the_detected_encoding():
    whole = "A reunião não começou às três horas. O coração da população está em São Paulo. " * 20 + "Malmö"
    assert text_of(whole.encode("cp1252")) == whole


def test_invalid_byte_loses_one_character():
    whole = GERMAN * 20
    assert GERMAN * 19 in text_of(whole.encode() + b"\xc3")  # the text ends within a character


@pytest.mark.parametrize("charset", ["shift_jis", "windows-1251", "iso-8859-15", "euc-jp", "windows-1252"])
def test_html_uses_declared_encoding(charset):
    words = {"windows-1251": "Договор", "iso-8859-15": "Läuft, 500 €.", "windows-1252": "Café – “naïve”"}
    said = words.get(charset, "契約は五月に終わります。")
    page = f'<!doctype html><html><head><meta charset="{charset}"></head><body><p>{said}</p></body></html>'
    assert text_of(page.encode(charset), "page.html") == said


@pytest.mark.parametrize(
    ("charset", "encoding", "said"),
    [
        ("windows-874", "cp874", "สัญญาเช่าสิ้นสุดในเดือนพฤษภาคม"),
        ("x-mac-cyrillic", "mac-cyrillic", "Договор заканчивается"),
        ("X-CP1251", "cp1251", "Договор заканчивается"),
        ("iso-2022-jp", "iso-2022-jp", "契約は五月に終わります。"),
    ],
)
def test_html_uses_web_encoding_labels(charset, encoding, said):
    assert text_of(named_page(charset, encoding, said), "page.html") == said


def named_page(charset, encoding, said):
    page = f'<!doctype html><html><head><meta charset="{charset}"></head><body><p>{said}</p></body></html>'
    return page.encode(encoding)


def test_log_with_escape_sequences_is_not_decoded_as_japanese():
    log = b"\x1b[1mdone\x1b[0m in 3 s, \x1b$Bx and \xc3\xbc"
    assert text_of(log) == log.decode()


def test_utf32_is_decoded_or_refused():
    try:
        text = "".join(part.text for part in read(GERMAN.encode("utf-32")).parts)
    except Exception as error:
        assert error.code == "UNSUPPORTED_TYPE"
    else:
        assert text == GERMAN


WIDE = {
    "english": "The lease ends in May.",
    "german": GERMAN,
    "russian": "Договор заканчивается в мае, и мы должны решить.",
    "greek": "Το συμβόλαιο λήγει τον Μάιο του 2026.",
    "hebrew": "חוזה השכירות מסתיים בחודש מאי, ב-2026.",
    "arabic": "ينتهي عقد الإيجار في شهر مايو 2026.",
    "hindi": "किराया हर महीने की तीसरी तारीख तक देना है।",
    "thai": "สัญญาเช่าสิ้นสุดในเดือนพฤษภาคม 2026",
    "japanese": JAPANESE,
    "chinese": "租房合同五月到期，房租每个月三号以前付。\n我们要决定是不是继续住在这里。\n",
    "korean": "임대 계약은 오월에 끝나므로 이 집에서 계속 살지 결정해야 합니다.",
    "smiling": "Paid in May \U0001f600, as ever.",
}


@pytest.mark.parametrize("end", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("language", WIDE)
def test_utf16_without_bom_is_decoded(language, end):
    assert text_of(WIDE[language].encode(end)) == WIDE[language]
    assert text_of((WIDE[language] * 99).encode(end)) == WIDE[language] * 99


def wrongly_named(name, more=""):
    """Return XML that declares a wrong encoding, as programs do that name the encoding of their strings in memory."""
    return f'<?xml version="1.0" encoding="{name}"?>\n<a>{GERMAN}{more}</a>'


WRONG = ("utf-16", "UTF-16LE", "utf-16be", "unicode", "x-user-defined")


@pytest.mark.parametrize("more", ["", "."], ids=["even", "odd"])
@pytest.mark.parametrize("name", WRONG)
def test_declared_encoding_that_cannot_be_true_is_ignored(name, more):
    said = wrongly_named(name, more)
    assert text_of(said.encode("cp1252")) == said


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 1000,
        b"a\0b\0c\0",
        b"\xe9\0" + b"words " * 99,
        b"\xff\xfe" + b"\0\0" * 500,
        GERMAN.encode("utf-16-le")[:-1],
        b"\0\1\0\2" * 200,
        bytes(range(256)) * 8,
        "\xe9\0 1000 2000 3000 4000".encode("latin-1") * 20,
    ],
    ids=[
        "only",
        "many",
        "not in UTF-8",
        "marked as utf-16",
        "half a letter",
        "marks",
        "all bytes",
        "numbers",
    ],
)
def test_data_with_many_null_bytes_is_refused(data):
    assert refused(data) in ("UNSUPPORTED_TYPE", "EMPTY")


MARKED = {
    "bell.log": (b"ping\x07\n", "ping \n"),
    "zero.log": (b"hello\0world", "hello world"),
    "zeros.log": (b"service started\n" * 40 + b"\0\0\0\n", "service started\n" * 40 + "   \n"),
    "end-of-file.txt": (b"the end\r\n\x1a", "the end\r\n "),
    "bold.1": (b"N\bNA\bAM\bME\bE\n   _\bl_\bs\n", "NAME\n   ls\n"),
    "progress.log": (b"10%\b\b\b20%\n", "10  20%\n"),
}


@pytest.mark.parametrize(("data", "said"), MARKED.values(), ids=MARKED)
def test_text_with_few_control_characters_is_decoded(data, said):
    assert text_of(data) == said


def test_invalid_text_after_bom_is_refused_as_damaged():
    assert refused(b"\xef\xbb\xbf" + b"\xff\xfa\xfb" * 9) == "DAMAGED"
    assert refused(b"\xff\xfe" + b"\x00\xd8" * 9) == "DAMAGED"


def test_long_line_is_decoded_completely():
    line = "word " * 10_000
    assert text_of(line.encode()) == line
    assert text_of(b"# Rent\n" + line.encode(), "a.md").endswith(line)
    assert text_of(b"<!doctype html><p>" + line.encode()) == line.strip()
