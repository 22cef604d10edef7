"""Multipart forms of uploads: malformed forms are rejected with an explanation and without storing a document."""

import asyncio
import time

import pytest

from server.in_process_server import check_problem, run, serve

FILE = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nThe lease ends.\r\n'
END = b"--B--\r\n"


def field(content, charset=b"utf-8", name=b"sessionId"):
    kind = b"Content-Type: text/plain; charset=" + charset
    return (
        b'--B\r\nContent-Disposition: form-data; name="'
        + name
        + b'"\r\n'
        + kind
        + b"\r\n\r\n"
        + content
        + b"\r\n"
    )


async def sent(person, body, kind="multipart/form-data; boundary=B"):
    return await person.call("POST", "/v1/documents", content=body, headers={"Content-Type": kind})


@pytest.mark.parametrize(
    "body",
    [
        FILE + field(b"\xff") + END,
        FILE + field(b"\xed\xa0\x80", name=b"id") + END,
        FILE + field(b"s" * 20_000) + END,
        FILE + field(b"s", name=b"other") * 1000 + END,
        FILE + FILE + END,
        FILE + field(b"a") + field(b"b") + END,
        FILE,
        FILE[:40],
        END,
        b"",
        b"--B\r\nX: " + b"a" * 100_000 + b"\r\n\r\nabc\r\n--B--\r\n",
    ],
)
@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=B", "multipart/form-data", "text/plain; boundary=B"]
)
def test_malformed_upload_form_is_rejected(tmp_path, body, kind):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            assert "500" not in check_problem(await sent(ada, body, kind), 400, "BAD_REQUEST")["detail"]
            assert await ada.live("documents") == {}

    run(scenario)


@pytest.mark.parametrize("charset", [b"bogus", b"hex", b"idna", b"undefined", b"utf-16", b'"a\0b"'])
def test_declared_encoding_of_a_form_part_is_ignored(tmp_path, charset):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await sent(ada, FILE + field(b"s1", charset) + END)
            assert (answer.status_code, answer.json()["document"]["activeSessions"]) == (201, ["s1"])

    run(scenario)


def test_form_field_that_is_slow_to_decode_is_rejected_quickly(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            body = FILE + field(b"a" * 100_000 + b"-" + b"b" * 100_000, b"punycode") + END
            began = time.thread_time()
            check_problem(await sent(ada, body), 400, "BAD_REQUEST")
            # CPU seconds. Decoding once took 1.2 s, and 100 times as long for ten times as many bytes.
            assert time.thread_time() - began < 0.5

    run(scenario)


def test_upload_sent_in_small_pieces_is_accepted(tmp_path):
    async def pieces(body):
        for at in range(0, len(body), 7):
            yield body[at : at + 7]
            await asyncio.sleep(0)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await sent(ada, pieces(FILE + field(b"s1") + END))
            assert (answer.status_code, answer.json()["document"]["size"]) == (201, 15)

    run(scenario)


ENCODED_NAMES = {
    "filename*=utf-8''%E5%A5%91%E7%B4%84.txt": "契約.txt",  # RFC 5987 (extended) file name
    "filename=\"x.txt\"; filename*=UTF-8'de'B%C3%BCrge.txt": "Bürge.txt",
    "filename*=iso-8859-1''B%FCrge.txt; filename=x.txt": "Bürge.txt",
    "filename*=punycode''a-b.txt; filename=plain.txt": "plain.txt",
    "filename*=utf-8''%FF%FE; filename=plain.txt": "plain.txt",
    "filename*0*=utf-8''%E5%A5%91; filename*1*=%E7%B4%84; filename*2=\".txt\"": "契約.txt",
    'filename="=?UTF-8?B?5aWR57SELnR4dA==?="': "契約.txt",
    'filename="=?UTF-8?B?5aWR?= =?utf-8?q?=E7=B4=84.txt?="': "契約.txt",
    'filename="=?iso-8859-1?Q?B=FCrge_schaft.txt?="': "Bürge schaft.txt",
    'filename="=?punycode?Q?a-b?= c.txt"': "=?punycode?Q?a-b?= c.txt",
    'filename="100%25 =?.txt"': "100%25 =?.txt",
}


@pytest.mark.parametrize(("parameter", "name"), ENCODED_NAMES.items())
def test_encoded_file_name_of_upload_is_decoded(tmp_path, parameter, name):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            head = f'--B\r\nContent-Disposition: form-data; name="file"; {parameter}\r\nContent-Type: text/plain\r\n\r\n'
            answer = await sent(ada, head.encode() + b"Words\r\n--B--\r\n")
            assert (answer.status_code, answer.json().get("document", {}).get("filename")) == (201, name)

    run(scenario)
