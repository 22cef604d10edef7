"""Write test files into a folder, and the server's result for each into about.json: `python make.py FOLDER`."""

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

from unit.engines.files import hostile_files, sample_files, test_file_type, test_refusal_reasons, test_tables
from unit.engines.files.charset import test_detect
from unit.engines.files.formats import test_all_formats, test_odt
from unit.engines.files.formats.ooxml import (
    test_charts,
    test_damaged_parts,
    test_docx,
    test_docx_numbering,
    test_number_formats,
    test_package,
    test_xlsx,
)
from vademecum.engines.files.result import MESSAGES, Limits
from vademecum.engines.files.worker import Task, error_code, parse_file
from vademecum.http.security_headers import content_security_policy
from vademecum.model.documents.chunking import chunk

LIBRARY = Path(__file__).parents[3] / ".cache" / "library" / "documents"
WORDS = "The lease ends in May."
SOAK = bool(os.environ.get("SOAK"))
# These documents take a browser long to read, so only the soak run includes them.
LONG = {"fracture-gap-size.pdf", "pasa-paper-search.pdf", "temporary-care-agreement.pdf"}


def library() -> Iterator[tuple[str, bytes]]:
    """Yield the documents of the test library, which other authors wrote."""
    for path in sorted(LIBRARY.iterdir()):
        if SOAK or path.name not in LONG:
            yield path.name, path.read_bytes()


def plain() -> Iterator[tuple[str, bytes]]:
    """Yield text files, of which the browser must make exactly the same chunks as the server."""
    paragraphs = "\n\n".join(f"{n}. {WORDS} {test_detect.GERMAN * 3}" for n in range(60))
    yield "long.txt", paragraphs.encode()
    yield "prices.csv", test_tables.prices()
    yield "prices.tsv", test_tables.prices("\t", "\r\n")
    for amount in test_tables.AMOUNTS:
        yield f"{amount}.tsv", test_tables.paid(amount)
    yield "titled.csv", "Prices of the tischler, größte zuerst\n".encode() + test_tables.prices(";")
    yield "unnamed.csv", test_tables.prices().replace(b"Article", b"")
    yield "odd quotes.csv", test_tables.prices().replace(b'7 boards"', b"7 boards")
    yield "empty lines.csv", test_tables.prices(end="\n\r\n") + b"\n" * 3000
    yield "latin.txt", paragraphs.encode("latin-1")
    yield "marked.txt", paragraphs.encode("utf-16")
    yield "other-end.txt", b"\xfe\xff" + paragraphs.encode("utf-16-be")
    for language, said in test_detect.WIDE.items():
        for end in ("utf-16-le", "utf-16-be"):
            yield f"{language} {end}.txt", said.encode(end)
    for name in test_detect.WRONG:
        yield f"named {name}.xml", test_detect.wrongly_named(name).encode("cp1252")
    yield "bom.txt", paragraphs.encode("utf-8-sig")
    yield "japanese.txt", (test_detect.JAPANESE * 200).encode()
    yield "mail.txt", (test_detect.JAPANESE * 200).encode("iso-2022-jp")
    yield "pages.txt", b"one\n\f\n\ftwo\fthree\n\f"
    yield "broken.txt", (test_detect.GERMAN * 20).encode() + b"\xc3"
    yield "polish.txt", "Umowa kończy się w maju.".encode("cp1250")
    yield "turkish.txt", "Kira her ayın başında ödenir, teşekkür ederiz.".encode("cp1254")
    yield "code.py", Path(sample_files.__file__).read_bytes()
    yield "coding.py", "# -*- coding: cp1251 -*-\nname = 'Договор'\n".encode("cp1251")
    yield "mark-in-text.md", b'# How to tell\nA PDF begins with "%PDF-1.7" and a line of bytes.\n'
    for name, (data, _) in test_detect.MARKED.items():
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
    """Yield files of every format, with the features that the server's readers support."""
    for ending, data in sample_files.plain_files().items():
        yield f"lease.{ending}", data
        yield f"{ending}-by-a-wrong-name.pdf", data
        if ending in ("docx", "pptx", "xlsx"):
            yield f"strict.{ending}", test_package.strict(data)
        if data.startswith(b"PK"):
            yield f"long.{ending}", test_package.long(ending)
        if ending in test_package.LINKED:
            yield f"linked.{ending}", test_package.linked(ending)
    for ending in test_package.KIN:
        yield f"kin.{ending}", test_package.kin(ending)
    for place, xml in test_docx.DOCX_SHOWN.items():
        yield f"{place}.docx", test_docx.docx_with(xml)
    for how, xml in (test_docx.DOCX_UNSEEN | test_docx.DOCX_SEEN).items():
        yield f"{how}.docx", test_docx.docx_styled(xml)
    yield "numbered.docx", test_docx.docx_numbered()
    yield "boxed.docx", test_docx.docx_boxed()
    yield "headed.docx", test_docx.docx_headed()
    yield "headed otherwise.docx", test_docx.docx_headed(first=True, even=True)
    yield "strict contract.docx", test_package.strict(test_docx_numbering.contract())
    for name, data in test_docx_numbering.made().items():
        yield f"{name}.docx", data
    for kind in ("footnote", "endnote"):
        yield f"{kind}.docx", test_docx.docx_noted(kind)
    yield (
        "headings.docx",
        sample_files.word(
            ("Title", "Lease"),
            "Before.",
            ("Heading 1", "Rent"),
            [["January", "500"]],
            ("Heading 2", "End"),
            "x",
        ),
    )
    yield "blank-page.pdf", sample_files.pdf("First line\nsecond line", "", "On the third page")
    yield "divided.pdf", sample_files.pdf("The rent is paid month-\nly.")
    yield "celled.pdf", test_all_formats.celled()
    yield "form.pdf", test_all_formats.form()
    yield "no-printing.pdf", sample_files.pdf(WORDS, password="")
    yield "before.pdf", b"HTTP/1.1 200 OK\r\n\r\n" + sample_files.pdf("in a PDF")
    yield "japanese.pdf", japanese_pdf()
    yield (
        "deck.pptx",
        sample_files.slides(("Rent", "Paid monthly."), ("Deposit", "Two months.\nBack in May.")),
    )
    yield "chart.pptx", test_charts.charted()
    yield "diagram.pptx", test_charts.diagrammed()
    yield "strict diagram.pptx", test_package.strict(test_charts.diagrammed())
    yield "drawn.docx", test_charts.word_drawn()
    yield "strict drawn.docx", test_package.strict(test_charts.word_drawn())
    yield "hidden drawn.docx", test_charts.word_drawn('hidden="1"')
    yield "changed.pptx", test_all_formats.changed_deck()
    yield "lost.docx", test_docx.docx_lost("NULL")
    for path in sorted(test_damaged_parts.CASES.iterdir()):
        yield path.name, path.read_bytes()
    for name, (data, _) in test_damaged_parts.CHUNKS.items():
        yield f"with {name}.docx", test_damaged_parts.with_chunk(name, data)
    yield "rows.xlsx", sample_files.workbook(**SHEETS)
    yield "prices.xlsx", sample_files.workbook(Prices=test_tables.PRICES)
    remarked = [[*row, "sold" if n % 40 == 0 else None] for n, row in enumerate(test_tables.PRICES)]
    yield "remarks.xlsx", sample_files.workbook(Prices=remarked)
    claimed = [(3, "Name", "Rent"), *((5 + n // 2 * (n % 7), "Ada", f"{n}") for n in range(300))]
    yield "claimed.xlsx", sample_files.sheet_of(*claimed)
    yield "uncounted.xlsx", sample_files.sheet_of(*((n % 9 * n or None, "Ada", f"{n}") for n in range(300)))
    for number in ("1.0", 0, 1_048_576):
        yield f"row {number}.xlsx", sample_files.sheet_of((number, "Ada"), (2, "Grace"))
    blanks = ("\x85", "\ufeff", "\xa0", "\u2028", "\u200b", "\u3000", "a\x85", "a\ufeff")
    yield "blanks.xlsx", sample_files.sheet_of(*((None, "Ada", blank) for blank in blanks), (None, "\ufeff"))
    for kind, (cell, _) in test_xlsx.CELLS.items():
        yield f"{kind}.xlsx", test_xlsx.with_cell(cell)
    for how, data in test_xlsx.ODDLY_NAMED.items():
        yield f"{how}.xlsx", data
    yield "odd looks.xlsx", test_xlsx.with_odd_looks()
    for kind, seen in test_number_formats.SEEN.items():
        cells = [(code, stored) for code, stored, _ in seen]
        yield f"{kind}.xlsx", test_number_formats.formatted(*cells)
        yield f"{kind}, since 1904.xlsx", test_number_formats.formatted(*cells, since_1904=True)
    yield "formats.xlsx", test_number_formats.of_openpyxl()
    yield "hostile formats.xlsx", test_number_formats.hostile()
    for code in test_number_formats.MONEY:
        yield f"paid in {code}.xlsx", test_number_formats.paid_in(code)
    yield "numbers.xlsx", test_number_formats.numbers()
    for state in ("hidden", "veryHidden", "visible"):
        yield f"{state}.xlsx", test_xlsx.with_hidden(state)
    yield "large.xlsx", sample_files.workbook(Rent=[[f"tenant {n}", n, "paid", n / 8] for n in range(4000)])
    yield "text.odt", sample_files.odt(ODT_BODY)
    for how in test_odt.SHOWN:
        yield f"{how}.odt", test_odt.shown(how)
    yield "headed.odt", test_odt.headed()
    yield "spine.epub", epub()
    yield "page.html", test_all_formats.HTML
    yield "apart.html", test_all_formats.APART
    yield "main.html", test_all_formats.MAIN
    yield "odd tags.html", ODD_TAGS
    yield (
        "lazy.html",
        b"<title>Lease</title><p>one<p hidden>unseen<p>two &lt;&eacute;&#8364;&#150;<ul><li>a<li>b</ul>",
    )
    for number, (written, _) in enumerate(RTF):
        yield f"{number}.rtf", rb"{\rtf1\ansi\ansicpg1252 " + written + b"}"
    yield "cyrillic.rtf", rb"{\rtf1\ansi\ansicpg1251 \'c4\'ee\'e3\'ee\'e2\'ee\'f0}"
    yield "links.html", LINKS
    yield "links.epub", sample_files.epub({"a.xhtml": LINKS.decode()})
    for charset in ("shift_jis", "windows-1251", "euc-jp"):
        said = "Договор" if charset == "windows-1251" else "契約は五月に終わります。"
        page = (
            f'<!doctype html><html><head><meta charset="{charset}"></head><body><p>{said}</p></body></html>'
        )
        yield f"{charset}.html", page.encode(charset)

    yield "thai.html", test_detect.named_page("windows-874", "cp874", "สัญญาเช่าสิ้นสุดในเดือนพฤษภาคม")


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
RTF = next(mark for mark in test_all_formats.test_rtf_escapes_become_characters.pytestmark if mark.args).args[
    1
]


def japanese_pdf() -> bytes:
    """Return a PDF without an embedded font or character map. Readers need their own table of Japanese characters."""
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    out = test_refusal_reasons.io.BytesIO()
    drawn = test_refusal_reasons.canvas.Canvas(out)
    drawn.setFont("HeiseiMin-W3", 12)
    drawn.drawString(72, 760, "契約は五月に終わります。")
    drawn.save()
    return out.getvalue()


def epub() -> bytes:
    chapter = sample_files.xhtml("<h1>One</h1><p>first&nbsp;line</p><script>no()</script>")
    chapters = {"b.xhtml": sample_files.xhtml("<h1>Two</h1><p>second</p>"), "part%20one/a.xhtml": chapter}
    order = ["part%20one/a.xhtml", "b.xhtml"]
    return sample_files.epub(chapters, order, **{"OEBPS/part one/a.xhtml": chapter})


def refused() -> Iterator[tuple[str, bytes]]:
    """Yield files without readable text. The browser must refuse each for the same reason as the server."""
    for kind, data in test_file_type.NOT_TEXT.items():
        yield f"{kind}.txt", data
    for kind, data in test_refusal_reasons.LOCKED.items():
        yield f"{kind}.bin", data
    yield "locked.pdf", sample_files.pdf(WORDS, password="secret")
    yield "scan.pdf", test_refusal_reasons.scan("", "")
    yield "numbers-alone.pdf", test_refusal_reasons.scan("1", "2")
    yield "scrambled.pdf", test_refusal_reasons.pdf_whose_letters_mean(b"E020")
    yield "half-scrambled.pdf", test_refusal_reasons.pdf_whose_letters_mean(b"0020", b"E020")
    for ending, data in test_refusal_reasons.WHOLE.items():
        for kept in (0.5, 0.95):
            yield f"{kept} of a.{ending}", data[: int(len(data) * kept)]
    for number, data in enumerate((b"", b" \n\t\r\n", b"\xef\xbb\xbf", b"\f\f\f")):
        yield f"empty {number}.txt", data
    yield "blank.docx", sample_files.word("", " ")
    yield "blank.xlsx", sample_files.workbook(Sheet=[[None]])
    yield "blank.pptx", sample_files.slides(("", ""))
    yield "blank.rtf", rb"{\rtf1\ansi \par }"
    yield (
        "blank.html",
        b"<!doctype html><html><head><title>x</title></head><body><script>x</script></body></html>",
    )
    yield "no mark.txt", b"\xef\xbb\xbf" + b"\xff\xfa\xfb" * 9
    yield "another.docx", sample_files.with_members(sample_files.word("x"), {"word/document.xml": "<other/>"})
    yield "no-package.epub", sample_files.epub({"a.xhtml": "x"}, **{"META-INF/container.xml": "<container/>"})
    yield "flipped.docx", flipped(test_refusal_reasons.WHOLE["docx"])
    yield (
        "zeros.docx",
        sample_files.with_members(sample_files.word("x"), {"word/media/a.bin": b"\0" * 100 * 2**20}),
    )
    yield "many-pages.pdf", hostile_files.raw_pdf(*many_pages())
    for number in ("1.5", "x", 1_048_577):
        yield f"row {number}.xlsx", sample_files.sheet_of((number, "Ada"))
    for what, data in test_xlsx.LOST.items():
        yield f"without {what}.xlsx", data


def flipped(data: bytes) -> bytes:
    """Return an archive in which one letter is changed. It is not compressed, so only the checksum shows the change."""
    with test_refusal_reasons.zipfile.ZipFile(test_refusal_reasons.io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return sample_files.zipped(members, sample_files.zipfile.ZIP_STORED).replace(
        b"of the lease", b"of the leash", 1
    )


def many_pages() -> list[bytes]:
    """Return the objects of a PDF with one page more than the limit. All pages are equal."""
    count = Limits().pages + 1
    kids = b" ".join(b"%d 0 R" % n for n in range(3, 3 + count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    return [
        hostile_files.CATALOGUE,
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        *[page] * count,
    ]


def attacks() -> Iterator[tuple[str, bytes]]:
    """Yield hostile files, which try to exhaust memory or time."""
    for ending in hostile_files.MEMBERS:
        yield f"bomb.{ending}", hostile_files.bomb(ending)
        if SOAK or ending in ("docx", "epub"):  # two suffice: the same code unpacks all formats
            yield f"lying bomb.{ending}", hostile_files.bomb(ending, claimed=1000)
        yield f"laughs.{ending}", hostile_files.with_doctype(ending, hostile_files.laughs())
    crowd = {f"e/{n}": b"" for n in range(100_000 if SOAK else 20_000)}
    yield (
        "crowd.docx",
        sample_files.zipped({"word/document.xml": "x"} | crowd, sample_files.zipfile.ZIP_STORED),
    )
    for ending in ("docx", "odt"):
        yield f"nested.{ending}", hostile_files.nested_xml(ending)
    yield "bomb.pdf", hostile_files.pdf_bomb()
    for count in (4000, -1, 2**40) if SOAK else (-1, 2**40):
        yield f"claims {count} pages.pdf", hostile_files.pdf_that_claims(count)
    yield "circles.pdf", hostile_files.pdf_whose_pages_go_in_circles()
    yield "draws itself.pdf", hostile_files.pdf_whose_drawing_draws_itself()
    yield "nested.html", b"<!doctype html><p>start</p>" + b"<div>" * hostile_files.DEEP + b"deep"
    yield (
        "nested.rtf",
        rb"{\rtf1 start " + rb"{\b " * hostile_files.DEEP + b"deep" + b"}" * hostile_files.DEEP + b" end}",
    )
    yield "brackets.txt", b"<" * 50_000 + b"x"
    yield "endless.json", b'["' + b"aB1+" * 4_000_000 + b'"]'
    yield "remarks.txt", b"<!-- " * 10_000 + b"x"


def for_the_server() -> Iterator[tuple[str, bytes]]:
    """Yield files whose encoding only the server detects. The browser must leave them to the server."""
    yield "utf-32.txt", test_detect.GERMAN.encode("utf-32")
    yield "russian.txt", "Договор заканчивается в мае.".encode("cp1251")
    yield "japanese.txt", (test_detect.JAPANESE * 50).encode("shift-jis")


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
        parsed = parse_file(Task(filename, Limits(), data))
    except Exception as error:
        return {"code": error_code(error)}
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
    about = {"policy": content_security_policy(), "messages": MESSAGES, "files": made}
    (folder / "about.json").write_bytes(msgspec.json.encode(about))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
