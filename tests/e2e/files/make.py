"""Writes files into a folder, and beside them what the server's reader makes of each: `python make.py FOLDER`."""

from __future__ import annotations

import base64
import datetime
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont

sys.path.insert(0, str(Path(__file__).parents[2]))

from unit.files import (
    hostile,
    making,
    test_drawn,
    test_encodings,
    test_formats,
    test_honest,
    test_looks,
    test_numbering,
    test_odd_parts,
    test_odt,
    test_office,
    test_sniff,
    test_table,
    test_word,
    test_workbook,
)
from vademecum.engines.files.parsed import MESSAGES, Limits
from vademecum.engines.files.worker import Task, read, refusal
from vademecum.http.headers import content_policy
from vademecum.model.chunk import chunk

LIBRARY = Path(__file__).parents[3] / ".cache" / "library" / "documents"
WORDS = "The lease ends in May."
SOAK = bool(os.environ.get("SOAK"))
# A browser takes long to read them.
LONG = {"fracture-gap-size.pdf", "pasa-paper-search.pdf", "temporary-care-agreement.pdf"}


def library() -> Iterator[tuple[str, bytes]]:
    """Real documents that others wrote."""
    for path in sorted(LIBRARY.iterdir()):
        if SOAK or path.name not in LONG:
            yield path.name, path.read_bytes()


def plain() -> Iterator[tuple[str, bytes]]:
    """What is cut into exactly the chunks that the server cuts."""
    paragraphs = "\n\n".join(f"{n}. {WORDS} {test_encodings.GERMAN * 3}" for n in range(60))
    yield "long.txt", paragraphs.encode()
    yield "prices.csv", test_table.prices()
    yield "prices.tsv", test_table.prices("\t", "\r\n")
    for amount in test_table.AMOUNTS:
        yield f"{amount}.tsv", test_table.paid(amount)
    yield "titled.csv", "Prices of the tischler, größte zuerst\n".encode() + test_table.prices(";")
    yield "unnamed.csv", test_table.prices().replace(b"Article", b"")
    yield "odd quotes.csv", test_table.prices().replace(b'7 boards"', b"7 boards")
    yield "empty lines.csv", test_table.prices(end="\n\r\n") + b"\n" * 3000
    yield "latin.txt", paragraphs.encode("latin-1")
    yield "marked.txt", paragraphs.encode("utf-16")
    yield "other-end.txt", b"\xfe\xff" + paragraphs.encode("utf-16-be")
    for language, said in test_encodings.WIDE.items():
        for end in ("utf-16-le", "utf-16-be"):
            yield f"{language} {end}.txt", said.encode(end)
    for name in test_encodings.WRONG:
        yield f"named {name}.xml", test_encodings.wrongly_named(name).encode("cp1252")
    yield "bom.txt", paragraphs.encode("utf-8-sig")
    yield "japanese.txt", (test_encodings.JAPANESE * 200).encode()
    yield "mail.txt", (test_encodings.JAPANESE * 200).encode("iso-2022-jp")
    yield "pages.txt", b"one\n\f\n\ftwo\fthree\n\f"
    yield "broken.txt", (test_encodings.GERMAN * 20).encode() + b"\xc3"
    yield "polish.txt", "Umowa kończy się w maju.".encode("cp1250")
    yield "turkish.txt", "Kira her ayın başında ödenir, teşekkür ederiz.".encode("cp1254")
    yield "code.py", Path(making.__file__).read_bytes()
    yield "coding.py", "# -*- coding: cp1251 -*-\nname = 'Договор'\n".encode("cp1251")
    yield "mark-in-text.md", b'# How to tell\nA PDF begins with "%PDF-1.7" and a line of bytes.\n'
    for name, (data, _) in test_encodings.MARKED.items():
        yield name, data
    yield "data.json", b'{"rent": [500, 510], "town": "K\xc3\xb6ln"}'
    spelled = rb"K\u00f6ln \\u00f6 \\\u00f6 \ud83d\ude00 \ud83d \u0022 \u000a \u007f \uD83D\uDE00"
    yield "spelled.json", b'{"town": "' + spelled + b'"}'
    yield "spelled.jsonl", b'{"town": "K\\u00f6ln"}\n{"town": "Bonn"}\n'
    picture = base64.b64encode(bytes(range(256)) * 20)
    yield "notebook.ipynb", b'{"image/png": "' + picture + b'", "gene": "' + b"ACGT" * 300 + b'"}'
    yield "picture.md", b"# Rents\n![](data:image/png;base64," + picture + b")\nPaid.\n"
    yield "remarks.md", b"<!-- remark -->\n" * 40 + b"The lease."
    yield (
        "lines.md",
        ("# Rent\rPaid.\x0b## Deposit\u2028Two months.\x85# End\n" + "word " * 40 + "\n\n").encode(),
    )
    yield (
        "fences.md",
        b"A\n\n# Rent #\nPaid.\n\n```sh\n# no\n```\n~~~\n```\n# no\n~~~\n## C#\n````\n```\n# no\n````` \n# ##\n# x",
    )
    for delimiter, name in ((",", "comma"), (";", "semicolon"), ("\t", "tab")):
        rows = ["month,euro", *(f'"March, {n}","{n * 7}"' for n in range(400))]
        yield f"{name}.csv", "\r\n".join(rows).replace(",", delimiter).encode()


def formats() -> Iterator[tuple[str, bytes]]:
    """Every format, and what each of them promises."""
    for ending, data in making.plain_files().items():
        yield f"lease.{ending}", data
        yield f"{ending}-by-a-wrong-name.pdf", data
        if ending in ("docx", "pptx", "xlsx"):
            yield f"strict.{ending}", test_office.strict(data)
        if data.startswith(b"PK"):
            yield f"long.{ending}", test_office.long(ending)
        if ending in test_office.LINKED:
            yield f"linked.{ending}", test_office.linked(ending)
    for ending in test_office.KIN:
        yield f"kin.{ending}", test_office.kin(ending)
    for place, xml in test_word.DOCX_SHOWN.items():
        yield f"{place}.docx", test_word.docx_with(xml)
    for how, xml in (test_word.DOCX_UNSEEN | test_word.DOCX_SEEN).items():
        yield f"{how}.docx", test_word.docx_styled(xml)
    yield "numbered.docx", test_word.docx_numbered()
    yield "boxed.docx", test_word.docx_boxed()
    yield "headed.docx", test_word.docx_headed()
    yield "headed otherwise.docx", test_word.docx_headed(first=True, even=True)
    yield "strict contract.docx", test_office.strict(test_numbering.contract())
    for name, data in test_numbering.made().items():
        yield f"{name}.docx", data
    for kind in ("footnote", "endnote"):
        yield f"{kind}.docx", test_word.docx_noted(kind)
    yield (
        "headings.docx",
        making.word(
            ("Title", "Lease"),
            "Before.",
            ("Heading 1", "Rent"),
            [["January", "500"]],
            ("Heading 2", "End"),
            "x",
        ),
    )
    yield "blank-page.pdf", making.pdf("First line\nsecond line", "", "On the third page")
    yield "divided.pdf", making.pdf("The rent is paid month-\nly.")
    yield "celled.pdf", test_formats.celled()
    yield "form.pdf", test_formats.form()
    yield "no-printing.pdf", making.pdf(WORDS, password="")
    yield "before.pdf", b"HTTP/1.1 200 OK\r\n\r\n" + making.pdf("in a PDF")
    yield "japanese.pdf", japanese_pdf()
    yield "deck.pptx", making.slides(("Rent", "Paid monthly."), ("Deposit", "Two months.\nBack in May."))
    yield "chart.pptx", test_drawn.charted()
    yield "diagram.pptx", test_drawn.diagrammed()
    yield "strict diagram.pptx", test_office.strict(test_drawn.diagrammed())
    yield "drawn.docx", test_drawn.word_drawn()
    yield "strict drawn.docx", test_office.strict(test_drawn.word_drawn())
    yield "hidden drawn.docx", test_drawn.word_drawn('hidden="1"')
    yield "changed.pptx", test_formats.changed_deck()
    yield "lost.docx", test_word.docx_lost("NULL")
    for path in sorted(test_odd_parts.CASES.iterdir()):
        yield path.name, path.read_bytes()
    for name, (data, _) in test_odd_parts.CHUNKS.items():
        yield f"with {name}.docx", test_odd_parts.with_chunk(name, data)
    yield "rows.xlsx", making.workbook(**SHEETS)
    yield "prices.xlsx", making.workbook(Prices=test_table.PRICES)
    remarked = [[*row, "sold" if n % 40 == 0 else None] for n, row in enumerate(test_table.PRICES)]
    yield "remarks.xlsx", making.workbook(Prices=remarked)
    claimed = [(3, "Name", "Rent"), *((5 + n // 2 * (n % 7), "Ada", f"{n}") for n in range(300))]
    yield "claimed.xlsx", making.sheet_of(*claimed)
    yield "uncounted.xlsx", making.sheet_of(*((n % 9 * n or None, "Ada", f"{n}") for n in range(300)))
    for number in ("1.0", 0, 1_048_576):
        yield f"row {number}.xlsx", making.sheet_of((number, "Ada"), (2, "Grace"))
    blanks = ("\x85", "\ufeff", "\xa0", "\u2028", "\u200b", "\u3000", "a\x85", "a\ufeff")
    yield "blanks.xlsx", making.sheet_of(*((None, "Ada", blank) for blank in blanks), (None, "\ufeff"))
    for kind, (cell, _) in test_workbook.CELLS.items():
        yield f"{kind}.xlsx", test_workbook.with_cell(cell)
    for how, data in test_workbook.ODDLY_NAMED.items():
        yield f"{how}.xlsx", data
    yield "odd looks.xlsx", test_workbook.with_odd_looks()
    for kind, seen in test_looks.SEEN.items():
        cells = [(code, stored) for code, stored, _ in seen]
        yield f"{kind}.xlsx", test_looks.formatted(*cells)
        yield f"{kind}, since 1904.xlsx", test_looks.formatted(*cells, since_1904=True)
    yield "formats.xlsx", test_looks.of_openpyxl()
    yield "hostile formats.xlsx", test_looks.hostile()
    for code in test_looks.MONEY:
        yield f"paid in {code}.xlsx", test_looks.paid_in(code)
    yield "numbers.xlsx", test_looks.numbers()
    for state in ("hidden", "veryHidden", "visible"):
        yield f"{state}.xlsx", test_workbook.with_hidden(state)
    yield "large.xlsx", making.workbook(Rent=[[f"tenant {n}", n, "paid", n / 8] for n in range(4000)])
    yield "text.odt", making.odt(ODT_BODY)
    for how in test_odt.SHOWN:
        yield f"{how}.odt", test_odt.shown(how)
    yield "headed.odt", test_odt.headed()
    yield "spine.epub", epub()
    yield "page.html", test_formats.HTML
    yield "apart.html", test_formats.APART
    yield "main.html", test_formats.MAIN
    yield "odd tags.html", ODD_TAGS
    yield (
        "lazy.html",
        b"<title>Lease</title><p>one<p hidden>unseen<p>two &lt;&eacute;&#8364;&#150;<ul><li>a<li>b</ul>",
    )
    for number, (written, _) in enumerate(RTF):
        yield f"{number}.rtf", rb"{\rtf1\ansi\ansicpg1252 " + written + b"}"
    yield "cyrillic.rtf", rb"{\rtf1\ansi\ansicpg1251 \'c4\'ee\'e3\'ee\'e2\'ee\'f0}"
    yield "links.html", LINKS
    yield "links.epub", making.epub({"a.xhtml": LINKS.decode()})
    for charset in ("shift_jis", "windows-1251", "euc-jp"):
        said = "Договор" if charset == "windows-1251" else "契約は五月に終わります。"
        page = (
            f'<!doctype html><html><head><meta charset="{charset}"></head><body><p>{said}</p></body></html>'
        )
        yield f"{charset}.html", page.encode(charset)

    yield "thai.html", test_encodings.named_page("windows-874", "cp874", "สัญญาเช่าสิ้นสุดในเดือนพฤษภาคม")


LINKS = (
    b'<!DOCTYPE html SYSTEM "http://localhost:1/dtd"><html><head><link rel="stylesheet" href="http://localhost:1/css">'
    b'<base href="http://localhost:1/"></head><body><p>seen</p><img src="http://localhost:1/img">'
    b'<iframe src="http://localhost:1/frame"></iframe></body></html>'
)
ODD_TAGS = (
    b"""<!doctype html><html><body><p class="x"">The rent</p> is due <p class="y"">in May.</p> <a title=it's>It</a>"""
    b""" ends <b title=it's>in June.</b> <i class = "a>b" id='>'>Or</i> later.</body></html>"""
)
SHEETS = {
    "Rent": [["Month", "Euro"], ["January", 500], [None, None], ["February", 510.5, None, "late"]],
    "Notes": [
        ["ends", datetime.date(2026, 5, 1), True],
        [datetime.datetime(2026, 5, 1, 13, 30, 5), datetime.time(7, 5), 2.0, -3],
        [datetime.timedelta(days=2, hours=3), 0.25, "2026"],
    ],
}
ODT_BODY = (
    "<text:p>Before all.</text:p><text:h>Rent</text:h><text:p>Paid<text:s/>each<text:tab/>month<text:line-break/>by"
    " <text:span>the 3rd</text:span>.<office:annotation><text:p>REMARK</text:p></office:annotation></text:p>"
    "<table:table><table:table-row><table:table-cell><text:p>January</text:p><text:p>late</text:p></table:table-cell>"
    "<table:table-cell><text:p>500</text:p></table:table-cell></table:table-row></table:table>"
)
RTF = next(mark for mark in test_formats.test_rtf_escapes_are_letters.pytestmark if mark.args).args[1]


def japanese_pdf() -> bytes:
    """Its font is not in the file, nor what its letters mean: a table that every reader has says it."""
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    out = test_honest.io.BytesIO()
    drawn = test_honest.canvas.Canvas(out)
    drawn.setFont("HeiseiMin-W3", 12)
    drawn.drawString(72, 760, "契約は五月に終わります。")
    drawn.save()
    return out.getvalue()


def epub() -> bytes:
    chapter = making.xhtml("<h1>One</h1><p>first&nbsp;line</p><script>no()</script>")
    chapters = {"b.xhtml": making.xhtml("<h1>Two</h1><p>second</p>"), "part%20one/a.xhtml": chapter}
    order = ["part%20one/a.xhtml", "b.xhtml"]
    return making.epub(chapters, order, **{"OEBPS/part one/a.xhtml": chapter})


def refused() -> Iterator[tuple[str, bytes]]:
    """What gives no words, for the reason that is true of it."""
    for kind, data in test_sniff.NOT_TEXT.items():
        yield f"{kind}.txt", data
    for kind, data in test_honest.LOCKED.items():
        yield f"{kind}.bin", data
    yield "locked.pdf", making.pdf(WORDS, password="secret")
    yield "scan.pdf", test_honest.scan("", "")
    yield "numbers-alone.pdf", test_honest.scan("1", "2")
    yield "scrambled.pdf", test_honest.pdf_whose_letters_mean(b"E020")
    yield "half-scrambled.pdf", test_honest.pdf_whose_letters_mean(b"0020", b"E020")
    for ending, data in test_honest.WHOLE.items():
        for kept in (0.5, 0.95):
            yield f"{kept} of a.{ending}", data[: int(len(data) * kept)]
    for number, data in enumerate((b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\f\f\f")):
        yield f"empty {number}.txt", data
    yield "blank.docx", making.word("", " ")
    yield "blank.xlsx", making.workbook(Sheet=[[None]])
    yield "blank.pptx", making.slides(("", ""))
    yield "blank.rtf", rb"{\rtf1\ansi \par }"
    yield (
        "blank.html",
        b"<!doctype html><html><head><title>x</title></head><body><script>x</script></body></html>",
    )
    yield "no mark.txt", b"\xef\xbb\xbf" + b"\xff\xfa\xfb" * 9
    yield "another.docx", making.with_members(making.word("x"), {"word/document.xml": "<other/>"})
    yield "no-package.epub", making.epub({"a.xhtml": "x"}, **{"META-INF/container.xml": "<container/>"})
    yield "flipped.docx", flipped(test_honest.WHOLE["docx"])
    yield "zeros.docx", making.with_members(making.word("x"), {"word/media/a.bin": b"\0" * 100 * 2**20})
    yield "many-pages.pdf", hostile.raw_pdf(*many_pages())
    for number in ("1.5", "x", 1_048_577):
        yield f"row {number}.xlsx", making.sheet_of((number, "Ada"))
    for what, data in test_workbook.LOST.items():
        yield f"without {what}.xlsx", data


def flipped(data: bytes) -> bytes:
    """One letter is another. Nothing is packed, so only the checksum tells."""
    with test_honest.zipfile.ZipFile(test_honest.io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return making.zipped(members, making.zipfile.ZIP_STORED).replace(b"of the lease", b"of the leash", 1)


def many_pages() -> list[bytes]:
    """One more than may be read; all are the same."""
    count = Limits().pages + 1
    kids = b" ".join(b"%d 0 R" % n for n in range(3, 3 + count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    return [hostile.CATALOGUE, b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count), *[page] * count]


def attacks() -> Iterator[tuple[str, bytes]]:
    """Files made to hurt."""
    for ending in hostile.MEMBERS:
        yield f"bomb.{ending}", hostile.bomb(ending)
        if SOAK or ending in ("docx", "epub"):  # it is unpacked, in one way for all
            yield f"lying bomb.{ending}", hostile.bomb(ending, claimed=1000)
        yield f"laughs.{ending}", hostile.with_doctype(ending, hostile.laughs())
    crowd = {f"e/{n}": b"" for n in range(100_000 if SOAK else 20_000)}
    yield "crowd.docx", making.zipped({"word/document.xml": "x"} | crowd, making.zipfile.ZIP_STORED)
    for ending in ("docx", "odt"):
        yield f"nested.{ending}", hostile.nested_xml(ending)
    yield "bomb.pdf", hostile.pdf_bomb()
    for count in (4000, -1, 2**40) if SOAK else (-1, 2**40):
        yield f"claims {count} pages.pdf", hostile.pdf_that_claims(count)
    yield "circles.pdf", hostile.pdf_whose_pages_go_in_circles()
    yield "draws itself.pdf", hostile.pdf_whose_drawing_draws_itself()
    yield "nested.html", b"<!doctype html><p>start</p>" + b"<div>" * hostile.DEEP + b"deep"
    yield "nested.rtf", rb"{\rtf1 start " + rb"{\b " * hostile.DEEP + b"deep" + b"}" * hostile.DEEP + b" end}"
    yield "brackets.txt", b"<" * 50_000 + b"x"
    yield "endless.json", b'["' + b"aB1+" * 4_000_000 + b'"]'
    yield "remarks.txt", b"<!-- " * 10_000 + b"x"


def for_the_server() -> Iterator[tuple[str, bytes]]:
    """What the server reads by guessing, and the browser leaves to it."""
    yield "utf-32.txt", test_encodings.GERMAN.encode("utf-32")
    yield "russian.txt", "Договор заканчивается в мае.".encode("cp1251")
    yield "japanese.txt", (test_encodings.JAPANESE * 50).encode("shift-jis")


GROUPS = {
    "library": library,
    "plain": plain,
    "formats": formats,
    "refused": refused,
    "attacks": attacks,
    "for the server": for_the_server,
}


def outcome(filename: str, data: bytes) -> dict[str, object]:
    try:
        parsed = read(Task(filename, Limits(), data))
    except Exception as error:
        return {"code": refusal(error)}
    chunks = [[c.start, c.text, c.page, c.section] for c in chunk(parsed.parts)]
    return {**msgspec.to_builtins(parsed), "chunks": chunks}


def main(folder: Path) -> None:
    made = []
    for group, files in GROUPS.items():
        for name, data in files():
            url = f"/files/{len(made)}"
            (folder / str(len(made))).write_bytes(data)
            said = {} if group == "attacks" else outcome(name, data)
            made.append({"group": group, "name": name, "url": url, "expected": said})
    about = {"policy": content_policy(), "messages": MESSAGES, "files": made}
    (folder / "about.json").write_bytes(msgspec.json.encode(about))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
