"""Text from outside, so that it cannot pass for a part of the prompt: neutral, and still readable.

The prompt tells its parts by headers in brackets, lines of dashes and labels such as `Source:`. Text that people,
files or models wrote may hold the same, by chance or by malice, or the marks by which models themselves tell who is
speaking, such as `<|eot_id|>`, which a tokenizer may read wherever they stand. What would be taken for a delimiter is changed as
little as does it: brackets become parentheses, a line of dashes a line of dots, the colon of a label a dash. Letters
are compared as the eye sees them: case, accents, widths, look-alikes of other alphabets and all that is invisible
between them do not count. The browser mirrors this file; shared cases: tests/conformance/sanitize.json.
"""

from __future__ import annotations

import re
import unicodedata

from vademecum.model.text.normalization import limit_mark_runs
from vademecum.model.text.unicode14 import map_assigned

_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
# Never seen, so no reader misses them, and able to hide a second text from a person but not from a model: controls,
# soft hyphens, zero-width spaces, changes of direction, tags. Joiners stay: emoji and Persian need them.
_HIDDEN = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_BLANK = (
    " \t\xa0\u1680\u2000-\u200f\u202f\u205f\u2800\u3000\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"
    "\ufe00-\ufe0f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_OPEN = (
    r"\[{<［｛＜【〔〖〘〚⟦⟨❲⁅「『《〈﹝﹛"
    + r"｢\u2329︗︷︹︻︽︿﹁﹃﹇﹤⌈⌊❬❮❰❴⟅⟪⟬⦃⦉⦋⦍⦏⦑⦗⧼⸢⸤"
    + "⹕⹗⦇⦓⦕⎡⎣⸂⸄⸉⸌⸦˂ᐸ"
)
_CLOSE = (
    r"\]}>］｝＞】〕〗〙〛⟧⟩❳⁆」』》〉﹞﹜"
    + r"｣\u232a︘︸︺︼︾﹀﹂﹄﹈﹥⌉⌋❭❯❱❵⟆⟫⟭⦄⦊⦌⦎⦐⦒⦘⧽⸣⸥"
    + "⹖⹘⦈⦔⦖⎤⎦⸃⸅⸊⸍⸧˃ᐳ"
)
# It starts where a run of brackets starts, or a long run would be tried from each of its places.
_BRACKETED = re.compile(f"(?<![{_OPEN}])[{_OPEN}]+([^{_OPEN}{_CLOSE}]*)[{_CLOSE}]+")
# A header whose bracket nothing closes, or with brackets in it: it would stand at the beginning of its line.
_UNCLOSED = re.compile(
    f"^([{_BLANK}]*)[{_OPEN}]+(?![{_OPEN}])(?=[^{_OPEN}{_CLOSE}\n]*(?:[{_OPEN}]|$))([^\n]*)", re.MULTILINE
)
_HEADER_WORDS = ("context", "system", "assistant", "instruction", "prompt", "imstart", "imend")
_HEADERS = (
    "inst",
    "sys",
    "user",
    "human",
    "toolcall",
    "toolcalls",
    "toolresponse",
    "toolresults",
    "availabletools",
)
# How models tell turns, letter by letter as they are taught: such a mark is read wherever it stands.
_ANGLE_MARK = re.compile(
    "/?(?:s|bos|eos|sop|eop|AI|用户|role|think|start_of_turn|end_of_turn|(?:seed|minimax):[a-z_]+|sep|eoh|eoa|_bot|_end"
    "|(?:SPECIAL_|extra_id_|reserved_|unused)[0-9]+|(?:BOS|EOS|EOP)_TOKEN)"
    "|[|｜][a-z_]+|[a-z_]+[|｜]"
)
_SQUARE_MARK = re.compile("[|](?:tool|endofturn)[|]|[gs]MASK|unused[0-9]+|/?THINK|ARGS|CALL_ID|TOOL_CONTENT")
# `]~b]`, `[e~[`: no pair of brackets, which is ordinary code, `df[~m]`.
_BROKEN_MARK = re.compile(r"(?!\[[^\[\]]{2,3}\])[\[\]](~!?[a-z]|!?[a-z]~)[\[\]]")
_BAR = "|｜"
_HEADER_LETTERS = 60  # more is a sentence in brackets
_COLON = ":：﹕∶꞉︓˸։׃"
_LABELLED = re.compile(f"^([^\n{_COLON}]*)[{_COLON}]", re.MULTILINE)
_LABELS = ("source", "user", "human", "assistant", "system", "theusersaid", "theanswerwas")
_HEADINGS = ("instruction", "response")  # labels where they are headings: `### Response:`
_DASH = (
    r"\-\u2010-\u2015\u2212\u2500\u2501\u2550\ufe58\ufe63\uff0d"
    + r"\u02d7\u058a\u1806\u2043\u207b\u208b\u23af\u2796\u2e3a\u2e3b\ufe31\ufe32"
    + r"\u05be\u1400\u2504\u2505\u2508\u2509\u254c\u254d\u2e40\u2e5d\u30fc\u3161\u4e00"
)
_RULE = re.compile(f"^[{_BLANK}]*(?:[{_DASH}][{_BLANK}]*){{3,}}$", re.MULTILINE)
_DOTS = "· · ·"
_QUOTE = re.compile('["＂“”„‟″〃]')
_BREAKS = re.compile("[\n\t]+")
_NO_LETTER = re.compile("[^a-z]+")
# Letters of Cyrillic, Greek, Armenian, Coptic, Lisu, Cherokee and the Canadian syllabics, small capitals, and Latin
# letters with a stroke, a hook or a tail, that look like plain Latin ones.
_LOOKS = (
    "АВЕКМНОРСТУХІЅЈаекморстухіѕјΑΒΕΗΙΚΜΝΟΡΤΥΧαεικορτυχ"
    "ԁһԛԝүӏԌԜ"
    "օսոցհզՍՕՏԼ"
    "ⲀⲂⲤⲈⲎⲒⲔⲘⲚⲞⲢⲦⲬⲨⲁⲃⲥⲉⲏⲓⲕⲙⲛⲟⲣⲧⲭⲩ"
    "ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ"
    "ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏒᏙᏚᏞᏟᏢᏦᏴᎩ"
    "ꭰꭱꭲꭺꭻꭼꮃꮇꮋꮐꮓꮢꮩꮪꮮꮯꮲꮶꭹ"
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"
    "ıȷɑɡ"
    "ØøĐđĦħŁłŦŧƀƁƂƃƇƈƊƋƌƑƒƓƗƘƙƚƝƞƟƤƥƫƬƭƮƲƳƴƵƶǤǥȠȡȤȥȴȵȶȺȻȼȽȾȿɀɃɆɇɈɉɋɌɍɎɏɓɕɖɗɠɦɨɫɬɭɱɲɳɼɽɾʂʈʋʐʑʝʠᵬ"
    "ᵭᵮᵯᵰᵱᵲᵳᵴᵵᵶᵽᶀᶁᶂᶃᶄᶅᶆᶇᶈᶉᶊᶌᶍᶎᶏᶑᶒᶖᶙỾỿⱠⱡⱢⱣⱤⱥⱦⱧⱨⱩⱪⱫⱬⱮⱱⱲⱳⱴⱸⱺⱾⱿꝀꝁꝂꝃꝄꝅꝈꝉꝊꝋꝌꝍꝐꝑꝒꝓꝔꝕꝖꝗꝘꝙꝞꝟꞎꞐꞑꞒꞓꞔꞕꞖꞗꞘꞙꞠ"
    "ꞡꞢꞣꞤꞥꞦꞧꞨꞩꞪꞭꞲꞸꞹꟄꟅꟆꟇꟈꟉꟊꬴꬷꬸꬹꬺꬻꭉꭎꭒꭖꭗꭘꭙꭚƐɛєҫҪҼҽѲѳӨөҲҳҬҭҚқҰұ"
    "ᗩᗷᑕᗪᖴᕼᒍᒪᗰᑎᑭᑫᖇᑌᐯᗯ᙭"
)
_LATIN = (
    "ABEKMHOPCTYXISJaekmopctyxisjABEHIKMNOPTYXaeikoptux"
    "dhqwylGW"
    "ounghqUOSL"
    "ABCEHIKMNOPTXYabcehikmnoptxy"
    "BPDTGKJCZFMNLSRVHWXYAEIOU"
    "DRTAJEWMHGZRVSLCPKBY"
    "drtajewmhgzrvslcpky"
    "abcdefghijklmnoprstuvwyz"
    "ijag"
    "OoDdHhLlTtbBBbCcDDdFfGIKklNnOPptTtTVYyZzGgNdZzlntACcLTszBEeJjqRrYybcddghilllmnnrrrstvzzjqb"
    "dfmnprrstzpbdfgklmnprsvxzadeiuYyLlLPRatHhKkZzMvWwveoSZKkKkKkLlOoOoPpPpPpQqQqVvlNnCcchBbFfG"
    "gKkNnRrSsHLJUuCSZDdSselllmnruuxxxxyEeecCEeOoOoXxTtKkYy"
    "ABCDFHJLMNPqRUVWX"
)
# The lunate sigma is a C to the eye; NFKD makes an ordinary sigma of it.
_LUNATE = str.maketrans("Ϲϲ", "Cc")
# White letters in black disks and squares; those that flags are made of are seen as flags.
_PICTURED = (0x1F150, 0x1F170)
_TWINS = str.maketrans(_LOOKS, _LATIN) | {first + n: chr(97 + n) for first in _PICTURED for n in range(26)}


def sanitize(text: str) -> str:
    """`text` without anything that could pass for a delimiter of the prompt."""
    text = _HIDDEN.sub("", _LINE_END.sub("\n", text))
    text = _BROKEN_MARK.sub(r"(\1)", _BRACKETED.sub(_without_brackets, text))
    text = _UNCLOSED.sub(_without_opening, text)
    return _RULE.sub(_DOTS, _LABELLED.sub(_without_colon, text))


def sanitize_line(text: str) -> str:
    """Neutral, and on one line: for names and for the lines of a list."""
    return _BREAKS.sub(" ", sanitize(text)).strip(" ")


def strip_hidden(text: str) -> str:
    """Remove invisible characters, and end each line with a line feed."""
    return _HIDDEN.sub("", _LINE_END.sub("\n", text))


def join_lines(text: str) -> str:
    """Replace line feeds and tabs by spaces."""
    return _BREAKS.sub(" ", text)


def quote(text: str) -> str:
    """Neutral, in double quotes. Those within become single ones, as in print, so that none ends it."""
    return '"' + _QUOTE.sub("'", sanitize(text)) + '"'


def _without_brackets(found: re.Match[str]) -> str:
    inside = found[1]
    return f"({inside})" if _is_turn_mark(found[0], inside) or _is_header(inside) else found[0]


def _without_opening(found: re.Match[str]) -> str:
    return f"{found[1]}({found[2]}" if _is_header(found[2]) else found[0]


def _is_turn_mark(whole: str, inside: str) -> bool:
    if "[" in whole and _SQUARE_MARK.fullmatch(inside):
        return True
    if "<" not in whole:
        return False
    is_between_bars = 2 < len(inside) <= _HEADER_LETTERS and inside[0] in _BAR and inside[-1] in _BAR
    return is_between_bars or _ANGLE_MARK.fullmatch(inside) is not None


def _is_header(inside: str) -> bool:
    return any(
        letters in _HEADERS
        or (len(letters) <= _HEADER_LETTERS and any(word in letters for word in _HEADER_WORDS))
        for letters in _readings(inside)
    )


def _without_colon(found: re.Match[str]) -> str:
    return f"{found[1]} -" if _is_label(found[1]) else found[0]


def _is_label(label: str) -> bool:
    is_heading = label.lstrip().startswith("#")
    return any(read in _LABELS or (is_heading and read in _HEADINGS) for read in _readings(label))


def _readings(text: str) -> list[str]:
    """What the eye may read: a zero is a number, or an O."""
    return [_letters(text)] if "0" not in text else [_letters(text), _letters(text.replace("0", "O"))]


def _letters(text: str) -> str:
    """The Latin letters that the eye sees, in lower case, and nothing between them."""
    return _NO_LETTER.sub("", map_assigned(limit_mark_runs(text), _latin))


def _latin(text: str) -> str:
    return unicodedata.normalize("NFKD", text.translate(_LUNATE)).translate(_TWINS).lower()
