"""Password normalization by RFC 8265 (OpaqueString), and validation of new email addresses."""

import unicodedata

import msgspec
import pytest

from server.accounts.account_clients import account, owner, signed_in
from server.in_process_server import browser, check_problem, run, serve
from vademecum.model.accounts.emails import check_email
from vademecum.model.accounts.passwords import prepare
from vademecum.services.accounts import sign_in

EMAIL = "ada@example.org"
COMPOSED = unicodedata.normalize("NFC", "Zürcher Straße é")
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


# The examples of RFC 8265, section 4.3, and further cases of its rules.
@pytest.mark.parametrize(
    ("typed", "prepared"),
    [
        ("correct horse battery staple", "correct horse battery staple"),
        ("Correct Horse Battery Staple", "Correct Horse Battery Staple"),
        ("πßå", "πßå"),
        ("Jack of ♦s", "Jack of ♦s"),
        ("foo\u1680bar", "foo bar"),
        ("non\xa0breaking\u3000wide", "non breaking wide"),
        (DECOMPOSED, COMPOSED),
        ("ﬁ stays", "ﬁ stays"),
        ("Ⅳ₂ ½ ✓ 😀", "Ⅳ₂ ½ ✓ 😀"),
        ("middle·dot", None),
        ("パ・ス", "パ・ス"),
        ("col·lecció", "col·lecció"),
        ("نمی\u200cخواهم", "نمی\u200cخواهم"),
        ("my cat is a \tby", None),
        ("zero\u200bwidth", None),
        ("soft\xadhyphen", None),
        ("tag\U000e0041", None),
        ("unassigned\u0378", None),
        ("private\ue000", None),
        ("line\u2028end", None),
    ],
)
def test_password_is_normalized_by_rfc_8265(typed, prepared):
    try:
        assert prepare(typed) == prepared and prepare(prepared) == prepared
    except ValueError:
        assert prepared is None


def test_unicode_forms_of_a_password_are_equivalent(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, EMAIL, password=DECOMPOSED)
            for typed in (COMPOSED, DECOMPOSED, COMPOSED.replace(" ", "\xa0")):
                here = await signed_in(h, EMAIL, typed)
            for new, current in ((COMPOSED + "!", DECOMPOSED), (COMPOSED, DECOMPOSED + "!")):
                changed = await here.post("/v1/password", json={"new": new, "current": current})
                assert changed.status_code == 200
            answer = await here.post("/v1/password", json={"new": "tab\tin a password", "current": COMPOSED})
            assert "U+0009" in check_problem(answer, 400, "BAD_REQUEST")["detail"]

    run(scenario)


def test_hash_of_unnormalized_password_is_rehashed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            made = await account(admin, EMAIL)

            async def store(typed):
                old = sign_in._hasher.hash(typed)
                change = lambda now: msgspec.structs.replace(now, password=old)  # noqa: E731
                await h.services.accounts.change_account(made["userId"], change)
                return old

            await store(DECOMPOSED)
            body = {"email": EMAIL, "password": COMPOSED}
            check_problem(await browser(h).post("/v1/sign-in", json=body), 401, "SIGNED_OUT")
            first = await signed_in(h, EMAIL, DECOMPOSED)
            assert (await first.get("/v1/me")).status_code == 200, "the session must survive the rehash"
            await signed_in(h, EMAIL, COMPOSED)
            # Old versions accepted tabs, so a sign-in must keep this hash.
            old = await store("with a\ttab in it")
            await signed_in(h, EMAIL, "with a\ttab in it")
            assert h.services.accounts.accounts[made["userId"]].password == old

    run(scenario)


@pytest.mark.parametrize(
    "email",
    [
        EMAIL,
        "josé@example.org",
        "иван@пример.рф",
        "оса@пример.рф",
        "ο.παπ@example.gr",
        "山田たろう@例え.jp",
        "김a@예.kr",
        "o'brien+x@example.co.uk",
    ],
)
def test_valid_email_is_accepted(email):
    assert check_email(f" {unicodedata.normalize('NFD', email)} ") == email


@pytest.mark.parametrize(
    "email",
    [
        "no address",
        "a\x00da@example.org",
        "ada\x7f@example.org",
        "ada\u200b@example.org",
        "a\u3164@example.org",
        "ada\u202e@example.org",
        "\ufeffada@example.org",
        "ad\u0430@example.org",  # a Cyrillic а
        "\u0430\u0441\u0435@example.org",  # асе, all Cyrillic
        "ada@ex\u03b1mple.org",
        "ａda@example.org",
        "ﬁ@example.org",
        "ada😀@example.org",
    ],
)
def test_confusable_email_is_rejected(tmp_path, email):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            answer = await admin.post("/v1/accounts", json={"email": email, "tier": "FREE"})
            check_problem(answer, 400, "BAD_REQUEST")
            assert len(h.services.accounts.accounts) == 1

    run(scenario)
