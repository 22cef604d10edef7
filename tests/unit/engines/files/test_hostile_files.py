"""A hostile file is refused or parsed. It never harms the server or reads its secrets."""

import http.server
import io
import threading
import zipfile

import pytest

from unit.engines.files import hostile_files
from unit.engines.files.file_reader import code_of, in_order, read, refused, run_alone, text_of
from unit.engines.files.hostile_files import DEEP, MEMBERS
from unit.engines.files.sample_files import (
    epub,
    odt,
    pdf,
    sheet_of,
    slides,
    with_members,
    word,
    workbook,
    xhtml,
    zipped,
)
from vademecum.engines.files.result import Unreadable

pytestmark = pytest.mark.usefixtures("unharmed")


def text_or_code(data, filename="file.txt", **limits):
    """Return the text, or the error code."""
    try:
        return text_of(data, filename, **limits)
    except Unreadable as error:
        return code_of(error)


@pytest.mark.parametrize("ending", MEMBERS)
def test_gigabyte_of_zeros_is_not_unpacked(ending):
    data = hostile_files.bomb(ending)
    assert len(data) < 2 * 2**20
    assert refused(data) == "TOO_EXPANSIVE"


@pytest.mark.parametrize("ending", MEMBERS)
def test_archive_bomb_with_false_size_is_not_unpacked(ending):
    assert refused(hostile_files.bomb(ending, claimed=1000), memory_bytes=400 * 2**20) in (
        "TOO_EXPANSIVE",
        "DAMAGED",
        "PARSE_MEMORY",
    )


def test_archive_limit_applies_to_the_sum_of_its_members():
    crowd = {f"word/media/{n}.bin": b"\0" * 2**20 for n in range(21)}
    data = with_members(word("x"), crowd)
    assert refused(data, expansion_bytes=20 * 2**20) == "TOO_EXPANSIVE"
    assert text_of(data, expansion_bytes=30 * 2**20) == "x"


def test_pdf_bomb_is_refused():
    assert refused(hostile_files.pdf_bomb(), seconds=60) in ("PARSE_MEMORY", "DAMAGED", "PARSE_TIMEOUT")


def test_very_long_word_in_pdf_is_read_quickly():
    """The search for hyphenated words starts only at the starts of words, so its time stays linear."""
    words = text_of(hostile_files.pdf_of_endless_words(), seconds=60).split()
    assert [len(word) for word in words] == [hostile_files.LONG_WORD] * 8


def test_archive_with_too_many_members_is_refused():
    crowd = {f"e/{n}": b"" for n in range(10_000)}
    assert refused(zipped({"word/document.xml": "x"} | crowd, zipfile.ZIP_STORED)) == "TOO_EXPANSIVE"


def test_large_workbook_is_read():
    rows = [[f"tenant {n}", 500, "paid", "January"] for n in range(4000)]
    assert in_order(text_of(workbook(Rent=rows)), "tenant 0\t500\tpaid", "tenant 3999\t500")


def test_sheet_with_distant_last_row_is_read():
    far = sheet_of((1, "Rent"), (1_048_576, "end"))
    with zipfile.ZipFile(io.BytesIO(far)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    book = workbook(Rent=[["x"]], Keys=[["x"]])
    parts = read(with_members(book, {f"xl/worksheets/sheet{n}.xml": sheet for n in (1, 2)})).parts
    assert [part.text for part in parts] == ["Rent\nend"] * 2
    assert refused(sheet_of((1, "Rent"), (10**12, "end"))) == "DAMAGED"


@pytest.mark.parametrize("ending", MEMBERS)
def test_xml_entities_are_not_expanded(ending):
    outcome = text_or_code(
        hostile_files.with_doctype(ending, hostile_files.laughs()), memory_bytes=400 * 2**20, seconds=20
    )
    assert outcome in ("TOO_EXPANSIVE", "DAMAGED") or outcome.count("laughter") <= 1


class Listener(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"fetched-from-outside")

    def log_message(self, *args):
        pass


@pytest.fixture
def listener():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("ending", MEMBERS)
def test_external_xml_entity_is_not_fetched(ending, listener, tmp_path):
    (tmp_path / "secret").write_text("root-of-all-secrets")
    secret, address = f"file://{tmp_path}/secret", f"http://127.0.0.1:{listener.server_port}/x"
    for place, other in ((secret, address), ("file:///etc/passwd", secret), (address, address)):
        outcome = text_or_code(hostile_files.with_doctype(ending, hostile_files.outside(place, other)))
        assert "root:" not in outcome
        assert "root-of-all-secrets" not in outcome
        assert "fetched-from-outside" not in outcome
    assert listener.asked == []


def test_html_parser_fetches_no_resource(listener):
    at = f"http://127.0.0.1:{listener.server_port}"
    page = (
        f'<!DOCTYPE html SYSTEM "{at}/dtd"><html><head><link rel="stylesheet" href="{at}/css"><base href="{at}/">'
        f'</head><body><p>seen</p><img src="{at}/img"><iframe src="{at}/frame"></iframe></body></html>'
    )
    assert text_of(page.encode()) == "seen"
    assert text_of(epub({"a.xhtml": page})) == "seen"
    assert listener.asked == []


def test_archive_with_path_traversal_writes_no_file(tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    climbing = {f"{'../' * n}evil.txt": b"evil" for n in range(1, 6)} | {f"{tmp_path}/evil.txt": b"evil"}
    for data in (with_members(word("kept"), climbing), odt("<text:p>kept</text:p>", **climbing)):
        assert run_alone(data, folder)[1].parsed.parts[0].text == "kept"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_epub_spine_with_path_traversal_reads_no_file():
    book = {"../../../../../etc/passwd": xhtml("<p>stand-in</p>"), "a.xhtml": xhtml("<p>kept</p>")}
    assert "root:" not in text_of(epub(book))


@pytest.mark.parametrize(
    "page",
    [
        b"<div>" * 300 + b"deep" + b"</div>" * 300,
        b"<blockquote>" * 1000 + b"deep" + b"</blockquote>" * 1000,
    ],
    ids=["300 boxes", "1000 quotations"],
)
def test_deeply_nested_html_is_read(page):
    assert in_order(text_of(b"<!doctype html><p>start</p>" + page + b"<p>end</p>"), "start", "deep", "end")


@pytest.mark.parametrize("tag", [b"div", b"b", b"h1", b"table"])
def test_extremely_nested_html_is_read_or_refused(tag):
    page = (
        b"<!doctype html><p>start</p>"
        + b"<%s>" % tag * DEEP
        + b"deep"
        + b"</%s>" % tag * DEEP
        + b"<p>end</p>"
    )
    outcome = text_or_code(page, seconds=20)
    assert outcome in ("TOO_EXPANSIVE", "DAMAGED", "PARSE_TIMEOUT") or in_order(
        outcome, "start", "deep", "end"
    )


@pytest.mark.parametrize("data", [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP])
def test_extremely_nested_json_is_plain_text(data):
    parsed = read(data, "a.json")
    assert parsed.mime_type == "text/plain"
    assert parsed.parts[0].text.encode() == data


def test_extremely_nested_rtf_is_read():
    outcome = text_of(rb"{\rtf1 start " + rb"{\b " * DEEP + b"deep" + b"}" * DEEP + b" end}")
    assert in_order(outcome, "start", "deep", "end")


@pytest.mark.parametrize("ending", ["docx", "odt"])
def test_extremely_nested_xml_is_refused(ending):
    assert refused(hostile_files.nested_xml(ending)) in ("DAMAGED", "TOO_EXPANSIVE")


def test_pdf_with_circular_pages_is_refused():
    assert refused(hostile_files.pdf_whose_pages_go_in_circles()) in ("DAMAGED", "NO_TEXT")


def test_pdf_with_recursive_drawing_does_not_hang():
    outcome = text_or_code(hostile_files.pdf_whose_drawing_draws_itself(), seconds=1.5)
    assert outcome in ("PARSE_TIMEOUT", "PARSE_MEMORY", "DAMAGED") or "The lease ends in May" in outcome


@pytest.mark.parametrize("count", [5001, 1_000_000])
def test_pdf_with_false_page_count_is_refused_early(count):
    assert refused(hostile_files.pdf_that_claims(count)) == "TOO_EXPANSIVE"


@pytest.mark.parametrize("count", [4000, -1, 2**31, 2**40])
def test_pdf_with_wrong_page_count_is_read(count):
    assert text_of(hostile_files.pdf_that_claims(count)) == "The lease ends in May"


@pytest.mark.parametrize("name", ["readme.md", "page.txt"])
def test_text_with_many_comments_is_read_quickly(name):
    # like a license at the start of a template: HTML detection must not backtrack over the comments
    assert text_of(b"<!-- remark -->\n" * 40 + b"The lease.", name, seconds=60).endswith("The lease.")


@pytest.mark.parametrize(
    "data",
    [b"<!-- " * 40_000 + b"x", b"<?xml " * 40_000 + b"x", b" " * 240_000 + b"x", b"<" * 200_000 + b"x"],
    ids=["open remarks", "open declarations", "blanks", "brackets"],
)
def test_html_detection_in_hostile_text_is_fast(data):
    assert text_of(data, seconds=60).endswith("x")


@pytest.mark.parametrize(
    "line", [b"# a" + b" " * 200_000 + b"b", b"# a" + b" #" * 100_000 + b"b", b"#" * 200_000, b"~" * 200_000]
)
def test_long_markdown_line_is_read_quickly(line):
    assert line.decode() in text_of(line + b"\nend", "a.md", seconds=60)


@pytest.mark.parametrize(
    "letters", [rb"\\" * 200_000, rb"\'e4" * 200_000, b"{" * 200_000, rb"\u8364?" * 200_000]
)
def test_long_rtf_line_is_read_quickly(letters):
    assert in_order(text_of(rb"{\rtf1 start " + letters + b"}", seconds=60), "start")


def test_too_long_text_is_refused():
    assert refused(b"word " * 1000, text_chars=4999) == "TOO_EXPANSIVE"
    assert read(b"word " * 1000, text_chars=5000).parts


@pytest.mark.parametrize(
    ("name", "unit"),
    [("a.txt", b"a\f"), ("a.md", b"# a\n"), ("a.html", b"<h1>a</h1>b"), ("b.txt", b"a\n\f\n")],
)
def test_file_with_too_many_parts_is_refused(name, unit):
    assert refused(unit * 300_000, name) == "TOO_EXPANSIVE"
    assert read(unit * 3000, name).parts


def test_long_section_title_is_truncated():
    page = b"<h1>" + b"a" * 900_000 + b"</h1>" + b"<p>b</p><h2></h2>" * 100
    parts = read(page, "a.html").parts
    assert len(parts) == 100
    assert {part.section for part in parts} == {"a" * 1000}


def test_parsers_leave_no_temporary_files(tmp_path):
    sound = [pdf("x" * 9), word("x"), slides(("T", "x")), workbook(Sheet=[["x"]]), odt("<text:p>x</text:p>")]
    bad = [
        hostile_files.bomb("xlsx"),
        hostile_files.with_doctype("docx", hostile_files.laughs()),
        hostile_files.pdf_that_claims(10**6),
    ]
    for data in sound:
        assert run_alone(data, tmp_path)[1].parsed is not None
    for data in bad:
        assert run_alone(data, tmp_path)[1].code
    assert list(tmp_path.iterdir()) == []
