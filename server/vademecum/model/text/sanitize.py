"""Sanitize text from outside, so that it cannot imitate the structure of a prompt.

A prompt marks its sections with headers in square brackets, lines of dashes and labels such as `Source:`. Text from
people, files and models may contain such marks, by chance or on purpose, or control tokens such as `<|eot_id|>`, which
a tokenizer may parse anywhere. The change is minimal: brackets become parentheses, a line of dashes becomes dots, the
colon of a label becomes a dash. Letters are compared after `fold`, without case, accents, widths and invisible
characters. Look-alike letters of other alphabets stay unchanged (docs/decisions/0028). The browser mirrors this file;
shared cases: tests/conformance/sanitize.json.
"""

from __future__ import annotations

import re

from vademecum.model.text.tokenize import fold

_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
# Invisible characters: controls, soft hyphens, zero-width spaces, direction marks, tags. Removing them changes nothing
# for a person, but they could carry text that only a model reads. Joiners stay, because emoji and Persian need them.
_HIDDEN = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_BLANK = " \t\xa0\u1680\u2000-\u200f\u202f\u205f\u3000"
_OPEN = r"\[{<［｛＜"
_CLOSE = r"\]}>］｝＞"
# Text in brackets. A match must start at the first bracket of a run. Otherwise a long run would take quadratic time.
_BRACKETED = re.compile(f"(?<![{_OPEN}])[{_OPEN}]+([^{_OPEN}{_CLOSE}]*)[{_CLOSE}]+")
# An unclosed header at the start of a line, or a header that contains brackets.
_UNCLOSED = re.compile(
    f"^([{_BLANK}]*)[{_OPEN}]+(?![{_OPEN}])(?=[^{_OPEN}{_CLOSE}\n]*(?:[{_OPEN}]|$))([^\n]*)", re.MULTILINE
)
_HEADER_WORDS = ("context", "system", "assistant", "instruction", "prompt", "imstart", "imend")
_HEADERS = frozenset(
    [
        "inst",
        "sys",
        "user",
        "human",
        "toolcall",
        "toolcalls",
        "toolresponse",
        "toolresults",
        "availabletools",
    ],
)
MAX_HEADER_LETTERS = 60  # a longer text in brackets is a sentence, not a header
# Control tokens of chat templates. These tokens are matched without `fold`, because a tokenizer parses only their exact
# spelling.
_ANGLE_TOKEN = re.compile(
    "/?(?:s|bos|eos|sop|eop|AI|用户|role|think|start_of_turn|end_of_turn|(?:seed|minimax):[a-z_]+|sep|eoh|eoa|_bot|_end"
    "|(?:SPECIAL_|extra_id_|reserved_|unused)[0-9]+|(?:BOS|EOS|EOP)_TOKEN)"
    "|[|｜][a-z_]+|[a-z_]+[|｜]"
)
_SQUARE_TOKEN = re.compile("[|](?:tool|endofturn)[|]|[gs]MASK|unused[0-9]+|/?THINK|ARGS|CALL_ID|TOOL_CONTENT")
# Control tokens such as `]~b]` and `[e~[`. A proper pair of brackets is ordinary code, such as `df[~m]`.
_TILDE_TOKEN = re.compile(r"(?!\[[^\[\]]{2,3}\])[\[\]](~!?[a-z]|!?[a-z]~)[\[\]]")
_LABELED = re.compile("^([^\n:：]*)[:：]", re.MULTILINE)
_LABELS = frozenset(["source", "user", "human", "assistant", "system", "theusersaid", "theanswerwas"])
_HEADINGS = frozenset({"instruction", "response"})  # labels only in headings: `### Response:`
_RULE = re.compile(
    rf"^[{_BLANK}]*(?:[\-\u2010-\u2015\u2212\u2500\u2501\u2550\uff0d][{_BLANK}]*){{3,}}$", re.MULTILINE
)
_DOTS = "· · ·"
# Numbers in brackets, in all forms in which models write citations: [3], [1, 2], [2-4], [^1], 【3】.
_NUMBER = re.compile(r"[\[［【〔]([\^†]?[0-9]{1,4}(?:[ ,;†–-]{1,3}[0-9]{1,4}){0,20})[\]］】〕]")
_QUOTE = re.compile('["＂“”„‟″〃]')
_NO_LETTER = re.compile("[^a-z]+")


def strip_hidden(text: str) -> str:
    """Remove invisible characters, and end each line with a line feed."""
    return _HIDDEN.sub("", _LINE_END.sub("\n", text))


def sanitize(text: str) -> str:
    """Rewrite everything that could pass for a delimiter of the prompt or for a control token."""
    text = _TILDE_TOKEN.sub(r"(\1)", _BRACKETED.sub(_replace_brackets, strip_hidden(text)))
    text = _UNCLOSED.sub(_replace_unclosed, text)
    return _RULE.sub(_DOTS, _LABELED.sub(_replace_colon, text))


def sanitize_line(text: str) -> str:
    """Sanitize a name or an item of a list, and put it on one line."""
    return join_lines(sanitize(text)).strip(" ")


def neutralize_numbers(text: str) -> str:
    """Replace the brackets of numbers such as `[3]`, which could pass for citations, with parentheses."""
    return _NUMBER.sub(r"(\1)", text)


def join_lines(text: str) -> str:
    """Replace line feeds and tabs with spaces."""
    return re.sub("[\n\t]+", " ", text)


def quote(text: str) -> str:
    """Sanitize a text and put it in double quotes.

    Double quotes within the text become single quotes, so none of them ends the quotation.
    """
    return '"' + _QUOTE.sub("'", sanitize(text)) + '"'


def _replace_brackets(match: re.Match[str]) -> str:
    inside = match[1]
    return f"({inside})" if _is_control_token(match[0], inside) or _is_header(inside) else match[0]


def _replace_unclosed(match: re.Match[str]) -> str:
    return f"{match[1]}({match[2]}" if _is_header(match[2]) else match[0]


def _is_control_token(bracketed: str, inside: str) -> bool:
    if "[" in bracketed and _SQUARE_TOKEN.fullmatch(inside):
        return True
    if "<" not in bracketed:
        return False
    is_between_bars = 2 < len(inside) <= MAX_HEADER_LETTERS and inside[0] in "|｜" and inside[-1] in "|｜"
    return is_between_bars or _ANGLE_TOKEN.fullmatch(inside) is not None


def _is_header(inside: str) -> bool:
    letters = _letters(inside)
    return letters in _HEADERS or (
        len(letters) <= MAX_HEADER_LETTERS and any(word in letters for word in _HEADER_WORDS)
    )


def _replace_colon(match: re.Match[str]) -> str:
    letters = _letters(match[1])
    is_heading = match[1].lstrip().startswith("#") and letters in _HEADINGS
    return f"{match[1]} -" if letters in _LABELS or is_heading else match[0]


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", fold(text))
