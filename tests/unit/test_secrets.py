"""Secrets are found and hidden; names, hashes and ordinary talk are left; no text takes longer than its length."""

from __future__ import annotations

import base64
import os
import random
import re
import string
import sys
import time
from itertools import chain, islice
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model import secrets
from vademecum.model.secrets import HIDDEN, find, hide, is_bare, looks, names, redact, shapes
from vademecum.model.secrets.pattern import Pattern, folded

SOAK = bool(os.environ.get("SOAK"))
LETTERS = string.ascii_letters + string.digits


def made(prefix: str, count: int, of: str = LETTERS) -> str:
    """A key of this form that is nobody's. Made here, so that no scanner takes this file for a leak."""
    rng = random.Random(prefix)
    return prefix + "".join(rng.choice(of) for _ in range(count - 1)) + "7"


JWT = ".".join((made("eyJ", 30), made("eyJ", 60), made("", 43)))
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{made('MII', 60)}\n{made('q', 63)}\n-----END RSA {'PRIVATE'} KEY-----"
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"

# text with {} in place of the secret, the secret
MUST = [
    ("The key is {}.", made("AKIA", 16, UPPER)),
    ("Use {} for CI", made("ASIA", 16, UPPER)),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("token {}, says Ada", made("ghp_", 36)),
    ("it is {}", made("github_pat_", 60)),
    ("GitLab: {}", made("glpat-", 20)),
    ("Slack {}!", made("xoxb-", 40)),
    ("post to https://hooks.slack.com/services/{} daily", f"T{made('0', 8, UPPER)}/B{made('0', 8, UPPER)}/{made('', 24)}"),
    ("Stripe {}", made("sk_live_", 24)),
    ("Stripe {}", made("rk_test_", 24)),
    ("Claude {}", made("sk-ant-api03-", 60)),
    ("OpenAI {}", made("sk-proj-", 48)),
    ("Maps {}", made("AIza", 35)),
    ("npm {}", made("npm_", 36)),
    ("hub {}", made("hf_", 34)),
    ("post {}", made("whsec_", 32)),
    ("bot {}", f"{made('12345678', 1, '9')}:{made('AA', 33)}"),
    ("PyPI {}", made("pypi-", 60)),
    ("Google {}", made("GOCSPX-", 28)),
    ("droplet {}", made("dop_v1_", 64, HEX)),
    ("age {}", made("AGE-SECRET-KEY-1", 58, UPPER)),
    ("mail {}", f"SG.{made('', 22)}.{made('x', 43)}"),
    ("the session was {} then", JWT),
    ("Authorization: Bearer {}", made("", 32)),
    ("curl -H 'authorization: basic {}'", base64.b64encode(b"ada:countess of 1815").decode()),
    ("The key:\n{}\nand more", PEM),
    ("postgres://ada:{}@db.example.org/main", "s3cret"),
    ("redis://:{}@cache:6379", "p@ss"),
    ("password={}", "swordfish"),
    ("DB_PASSWORD: {}", "hunter22"),
    ('{{"password": "{}"}}', "correct horse".replace(" ", "-")),
    ("my password is {}", "hunter2"),
    ("My password is {}.", "swordfish"),
    ("The password was {}, I think", "Tr0ub4dor&3"),
    ("My password is {}!", "swordfish"),
    ("the wifi password is '{}' at home", "sunflower"),
    ("The password of the router is {}, says Ada", "hunter2"),
    ("Das Passwort für den Router ist {}", "Sommer2024"),
    ("La contraseña de la casa es {}", "gato-2020"),
    ("Das Passwort ist {}.", "Sommer2024!"),
    ("Kennwort: {}", "geheim99"),
    ("Le mot de passe est {}", "azerty123"),
    ("La contraseña es {}", "gato-2020"),
    ("A senha é {}", "cafe1234"),
    ("Het wachtwoord is {}", "fiets#12"),
    ("Hasło: {}", "zielony7"),
    ("Пароль: {}", "солнце42"),
    ("密码是 {}", "abc12345"),
    ("パスワード：{}", "sakura77"),
    ("비밀번호: {}", "nabi2020"),
    ("api_key={}", "0123456789abcdef0123456789abcdef"),
    ("API key: {}", "k-12-xyz"),
    ("client secret: {}", "a1b2c3d4"),
    ("PIN: {}", "4711"),
    ("my password is {}", "correct horse battery staple"),
    ('password = "{}" # for Ada', "correct horse battery staple"),
    ("the password is “{}” for now", "my horse, my staple"),
    ("pass: {}", "hunter2abc"),
    ("mysql -h db -u ada -p{} shop", "swordfish"),
    ("docker login -u ada -p {} quay.io", "swordfish"),
    ("redis-cli -h cache -a {} ping", "swordfish"),
    ("pw: {}", "Tr0ub4dor&3"),
    ("the wifi password {}, if you need it", "Blue42fish"),
    ("the password for the router was changed to {}", "Blue42fish"),
    ("The password has been set to {}.", "Blue42fish"),
    ("my PIN {} is old", "4711"),
    ("card {} expires soon", "4111 1111 1111 1111"),
    ("card {}.", "5500005555555559"),
    ("The PIN is {}.", "0815"),
    ("PGPASSWORD={} psql -h db", "swordfish"),
    ("export SSHPASS={}", "hunter2"),
    ("mysql --password {} -h db", "swordfish"),
    ("deploy --auth-token '{}' now", "abcd-efgh"),
    ("curl -u ada:{} https://example.org", "swordfish"),
    ("sshpass -p {} ssh ada@example.org", "hunter2"),
    ("curl -uada:{} https://example.org", "swordfish"),
    ("curl -sSfuada:{} https://example.org", "4711"),
    ("curl -X POST 'https://example.org/?a=1&b=2' -u'ada:{}'", "swordfish"),
    ("curl \\\n  -uada:{} \\\n  https://example.org", "swordfish"),
    ("curl --user=ada:{} https://example.org", "swordfish"),
    ("curl --user ada:{} https://example.org", "4711"),
    ("curl --proxy-user 'ada:{}' https://example.org", "swordfish"),
    ("git clone https://{}@example.org/ada/engine.git", made("", 40, HEX)),
    ("git clone https://{}@example.org/ada/engine.git", "s3cret7x"),
    ("pip install --index-url https://{}:@packages.example.org/x y", made("", 24)),
    ("git push HTTPS://{}@example.org main", "abcdefghijkLMNOPQRSTUVWX"),
    ("ssh-keygen -t ed25519 -N {} -f key", "swordfish"),
    ("ssh-keygen -t ed25519 -f key -N '{}'", "correct horse battery staple"),
    ('ssh-keygen -p -P "{}" -f key', "old horse"),
    ("mysql -h db -p'{}' shop", "my horse"),
    ("az login -u ada -p {}", "swordfish"),
    ("oc login -u ada -p {} https://example.org", "swordfish"),
    ("sqlcmd -S db -U sa -P {} -Q 'select 1'", "swordfish"),
    ("mongosh -u ada -p {} shop", "swordfish"),
    ("ldapsearch -x -D cn=ada -w {} -b dc=example", "swordfish"),
    ("keytool -list -storepass {} -keystore k.jks", "swordfish"),
    ("zip -r -P {} a.zip b", "swordfish"),
    ("twine upload -u ada -p {} dist/*", "swordfish"),
    ("smbclient -U ada%{} //host/share", "swordfish"),
    ("gh secret set TOKEN --body '{}'", "my horse"),
    ("set -x TOKEN {}", "swordfish"),
    ("setenv DB_PASSWORD '{}'", "my horse"),
    ("aws configure set aws_secret_access_key {}", made("wJ", 38)),
    ("htpasswd -b /etc/users ada {}", "swordfish"),
    ("sudo htpasswd -cbB users ada {} && systemctl reload nginx", "swordfish"),
    ("htpasswd -nbB ada {} > users", "4711"),
    ("htpasswd -B -C 12 -b users ada '{}' and so on", "correct horse"),
    ("openssl enc -aes-256-cbc -k {} -in a -out b", "hunter2"),
    ("openssl rsa -in key.pem -passin pass:{}", "swordfish"),
    ("openssl enc -d -aes-128-cbc -K {} -iv 00ff", made("", 32, HEX)),
    ("echo '{}' | sudo -S make install", "hunter22"),
    ("echo {} | sudo -kS -p '' ls", "swordfish"),
    ("printf '%s\\n' {} | sudo --stdin ls", "swordfish"),
    ('sudo -S ls <<< "{}"', "my horse"),
    ("echo {} | docker login -u ada --password-stdin", "swordfish"),
    ("echo '{}' | sudo chpasswd", "ada:swordfish"),
    ("curl -H 'Cookie: session={}' https://example.org/?page=1234", made("", 32, HEX)),
    ("Set-Cookie: sid={}; Path=/home; Expires=Wed, 21 Oct 2026 07:28:00 GMT; SameSite=Strict", made("", 32, HEX)),
    ('headers = {{"Cookie": "session={}"}}', "swordfish"),
    ("Cookie: to=$SESSION; session={}", made("", 24, HEX)),
    ("curl -b session={} https://example.org/?page=1234", "swordfish"),
    ("curl --cookie 'session={}' https://example.org", "swordfish"),
    ("echo mypassword is {}", "swordfish"),
    ("dbpassword={}", "swordfish"),
    ("const user = {{ newPassword: '{}' }}", "swordfish"),
    ("Das Adminpasswort lautet {}", "Apfelbaum"),
    ("jwtSecret: '{}',", "swordfish"),
    ("I set the password of the router to {}.", "swordfish"),
    ("Vault {}", made("hvs.", 24)),
    ("hub {}", made("dckr_pat_", 27, string.ascii_lowercase)),
    ("shop {}", made("shpat_", 32, HEX)),
    ("CREATE USER ada IDENTIFIED BY '{}';", "swordfish"),
    ("ALTER ROLE ada WITH LOGIN PASSWORD '{}';", "my horse"),
    ("<server><password>{}</password></server>", "swordfish"),
    ("machine example.org login ada password {}", "swordfish"),
    ("sshpass -p{} ssh ada@example.org", "hunter2"),
    ("7z a -p{} a.7z b", "swordfish"),
    ("nmcli dev wifi connect home password {}", "swordfish"),
    ("wpa_passphrase home {}", "swordfish"),
    ("kubectl create secret generic db --from-literal=db={}", "swordfish"),
    ("fly secrets set DB={}", "swordfish"),
    ("vault login {}", "s.abcdefgh"),
    ("ngrok config add-authtoken {}", "swordfish"),
    ("rclone obscure {}", "swordfish"),
    ("I wrote down {} somewhere", made("", 43)),
    ("I wrote down {} somewhere", made("", 32, string.ascii_lowercase + string.digits)),
    ("seed {}", base64.b64encode(random.Random(5).randbytes(48)).decode()),
]  # fmt: skip

MUST_NOT = [
    "mypassword is wrong; resetPassword: string; the userpassword is required; set the password to make it safe",
    "<password>$PASS</password> <token/> <input type=password> x</b>; ALTER USER ada PASSWORD NULL; identified by its name",
    "vault login -method=oidc; ngrok http 80; sshpass -e ssh a; 7z x a.7z; nmcli dev wifi list; fly secrets list; login page",
    "card 4111 1111 1111 1112, order 1763760000000, number 20210304123000",
    "The password was changed to make it safe. The pass: open. A password is kept in the vault by Ada",
    "the pin 2024-01-01 and pin 10 of the chip; password rules and password 12",
    "password_validator checks the length",
    "The password is wrong!",
    "docker run -u1000:1000 x; tar -uf a:b; curl -uada https://example.org:8443/ -o out:put; curl -O --user-agent a:b",
    "git clone https://ada@example.org/x and https://lovelace1815@example.org, https://x-access-token@example.org",
    "https://ada.lovelace@example.org:8443 and https://${GITHUB_TOKEN_OF_ADA}@example.org, https://<your-token-1x>@host",
    "ssh-keygen -t ed25519 -N '' -f key; ssh-keygen -N \"\" -f x; ssh-keygen -N $PASS; ssh-keygen -lf key; ssh-keygen -R example.org",
    "htpasswd users ada; htpasswd -c users ada; htpasswd -D users ada lovelace; htpasswd -b users ada $PASS; htpasswd -n ada",
    "openssl req -new -key server.key -keyout k.pem -passin env:PASS; openssl dgst -sha256 -k; openssl enc -kfile x -pass file:x",
    "echo done | sudo tee /etc/x; echo $PASS | sudo -S ls; echo hello | sudo sh -c 'cat > /S'; echo a; sudo -S ls; cat <<< hello",
    "Cookie: <name>=<value>; the cookie: sweet and good; Set-Cookie: a=1; cookies: a few; Cookie: session=$SESSION; Path=/home/ada",
    "zip -r a.zip b; unzip -p a.zip b; twine check -p; mongodump --db shop -o out; ldapsearch -x -W -b dc=w; keytool -list -v",
    "mkdir -p dir; docker run -p 80:80 x; ssh -p 22 host; grep -w word a; tar -P x; cp -p a b; patch -p1; git log -p main; ls -w 80",
    "az login --use-device-code; oc login; gh secret set TOKEN --body $TOKEN; gh secret list; set -e; set -x; set -euo pipefail",
    "aws configure set region eu-west-1; aws configure set aws_access_key_id $ID; git config --global user.name Ada; set -x TOKEN $X",
    "we set the token limit to 300; set password rules; config set max_tokens",
    "curl -b cookies.txt -c cookies.txt https://example.org/?page=1234 --cookie-jar jar=1234",
    "docker run -u 1000:1000 -u app; grep --user ada; bench --max-tokens 4096 --tokenizer bert --token $TOKEN",
    "pip --password-file ~/.pass --secret <name>",
    "education has become the secret to growth",
    "Call validate_password(user) first",
    "git://example.org/ada/engine.git and https://example.org:8443/@ada",
    "git switch task-42-rename-the-folders-of-users",
    "Sultan: 1453, spin is 1000, a subtoken: 12ab34",
    "sk-iplink and sk-this-is-only-a-long-name-of-a-thing",
    "the token count was 150, max_tokens=4096 and token: 12",
    "The PostgreSQL password was changed",
    "The password is wrong. The password is not stored. Your password is too short",
    "The password has expired; the secret of a good soup is patience and time",
    "Das Passwort ist falsch. Le mot de passe est incorrect. La contraseña es incorrecta.",
    "password = getenv('X'); password: $SECRET; password=<your password>; password: ********; password = None",
    "the bearer of good news, bearer notwithstanding",
    "id 018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f",
    f"sha-256 of the file: {made('', 64, HEX)}; commit {made('', 40, HEX)}",
    f"sha256-{made('', 64, HEX)} and md5={made('', 32, HEX)}",
    "server/vademecum/engines/duckdb/accounts/2024/report_final_v2.py",
    "https://example.org/2021/03/04/a-long-title-of-a-post-about-7-things?page=2",
    "getHttpServerConfigurationFactoryBean2 and convertUtf8ToLatin1String",
    "2021-03-04T12:30:00.000Z to 20210304-meeting-notes-version-2",
    "PIN it to the board, pin: 10 mm, the pin is 2.5 cm long",
    "Donaudampfschifffahrtsgesellschaftskapitän Überraschungsparty",
    "Elle a dit que c'était anticonstitutionnellement impossible",
    "La electroencefalografista vive en Sevilla desde 1998",
    "O inconstitucionalissimamente longo discurso de ontem",
    "La precipitevolissimevolmente famosa parola italiana",
    "De arbeidsongeschiktheidsverzekering loopt af in 2026",
    "Konstantynopolitańczykowianeczka mieszka w Krakowie",
    "Превысокомногорассмотрительствующий человек",
    "彼女は来週京都に引っ越すと言っていた",
    "她下个星期要搬到北京去住了",
    "그녀는 다음 주에 부산으로 이사한다고 말했다",
    f"![plot](data:image/png;base64,iVBORw0KGgo{made('', 200)})",
    "call +49 30 1234567 or mail ada.lovelace1815@example.org",
    "My key ring is blue; the keyboard: mechanical; the key: practice every day",
]


@pytest.mark.parametrize(("text", "secret"), MUST, ids=[text for text, _ in MUST])
def test_a_secret_is_hidden_and_what_stands_around_it_is_left(text: str, secret: str) -> None:
    whole = text.format(secret)
    hidden = redact(whole)
    assert secret not in hidden and HIDDEN in hidden
    pieces = [piece for piece in re.split(r"[\s/]+", secret) if len(piece) > 3]
    assert not any(piece in hidden for piece in pieces), hidden
    before, after = text.format("\0").split("\0")
    assert hidden == f"{before}{HIDDEN}{after}"


@pytest.mark.parametrize("text", MUST_NOT)
def test_what_only_looks_like_a_secret_is_left(text: str) -> None:
    assert redact(text) == text, [(text[s.start : s.end], s.kind) for s in find(text)]


def test_several_secrets_of_a_text_are_all_hidden() -> None:
    keys = [made("ghp_", 36), made("sk_live_", 30), JWT]
    hidden = redact(f"{keys[0]} and {keys[1]}, password: {keys[2]}")
    assert hidden == f"{HIDDEN} and {HIDDEN}, password: {HIDDEN}"


def test_a_private_key_that_was_cut_off_is_hidden_to_the_end() -> None:
    assert redact(f"Mine: {PEM[:90]}") == f"Mine: {HIDDEN}"


@pytest.mark.parametrize("most", range(3, 60))
def test_a_secret_that_a_cut_divides_leaves_no_half_behind(most: int) -> None:
    key = made("ghp_", 36)
    text = f"The key {key} is new."
    hidden, count = hide(text, most)
    assert key[:6] not in hidden and key[-6:] not in hidden
    assert count == (most > len("The key "))
    assert hidden == redact(text)[: len(hidden)]


def test_what_a_hidden_secret_makes_room_for_is_not_what_lies_beyond_the_cut() -> None:
    first, second = made("ghp_", 200), made("glpat-", 1900)
    assert hide(f"{first} {second}", 210) == (f"{HIDDEN} {HIDDEN}", 2)
    assert hide(f"{first} and on", 206) == (f"{HIDDEN} a", 1)


def test_a_text_that_says_nothing_but_a_secret_is_bare() -> None:
    assert is_bare(redact(made("ghp_", 36))) and is_bare(redact("Password: hunter2!"))
    assert not is_bare(redact("The password of the router is hunter2")) and not is_bare("Ada")


@given(st.text(max_size=300))
def test_spans_are_in_order_apart_and_within_the_text(text: str) -> None:
    at = 0
    for span in find(text):
        assert at <= span.start < span.end <= len(text)
        at = span.end


@given(st.text(alphabet="ab \n", max_size=60), st.text(alphabet="ab \n", max_size=60))
def test_a_known_key_is_found_wherever_it_stands(before: str, after: str) -> None:
    key = made("ghp_", 36)
    assert redact(f"{before} {key} {after}") == f"{before} {HIDDEN} {after}"


HOSTILE = ["eyJ", "eyJ.", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "://a:", "://", "a", "aA1", "password",
           "password:", "password is ", "password is", "sk-", "sk-a", "Bearer ", "Bearer a", "xoxb-", "SG.", "SG.aaaaaaaaaaaaaaaa", "=", " ", "\"", "0123456789:",
           "api key", "hooks.slack.com/services/", "/", "1/", "A1b/", "пароль", "\u0301", "ghp_", "-", "pin is 1", "0x", "--", "--a", " --a", " --token ", " -u a:", " -u a", "sshpass -p ", "curl ", "curl -u", "curl -ua:", "curl -uuuu", "curl -u a ", "ssh-keygen ", "ssh-keygen -N ", "ssh-keygen -N '", "htpasswd ",
           "Cookie: a=", "cookie:", "Cookie: a=bbbb;", "curl -b ", "--cookie a", "echo ", "echo a|", "echo a|sudo ", "echo 'a' | sudo -", "printf %s ", "sudo -S <<<", "chpasswd ", "zip ", "zip -P ", "ldapa -w '", "gh secret set ", "smbclient -U a", "set -x ", "set -x token", "config set ", "setenv secret ", "openssl ", "openssl -k ",
           "htpasswd -b ", "htpasswd -b '", "http://", "http://a1", "https://aaaaaaaa1a", "https://aaaaaaa1:", "-b ",
           "set a ", "set a b password of a b ", "nmcli ", "kubectl secret ", "7z -p", "wpa_passphrase ", "identified with a ", "create user ", "alter user a password '", "<a", "<password>", "login a ", "login a password "]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_line_takes_no_more_than_its_length_asks_for(piece: str) -> None:
    """Quadratic would be 10^9 steps, many seconds; the processor's time allowed is many times what is needed."""
    line = piece * ((2**20 if SOAK else 2**15) // len(piece))
    redact(line[:100])  # a pattern is compiled when it is first wanted
    began = time.process_time()
    redact(line)
    assert time.process_time() - began < (60 if SOAK else 2)


def patterns() -> list[Pattern]:
    held = [value for module in (secrets, shapes, names, looks) for value in vars(module).values()]
    return [one for one in (*held, *shapes._KEYS.values(), *shapes._COOKIES) if isinstance(one, Pattern)]


def walk(parsed: Any, inside: bool, last: bool) -> None:
    """Every repeat: bounded, or at the end of its pattern, or possessive; and none within one that repeats often."""
    items = list(parsed)
    for at, (op, args) in enumerate(items):
        end = last and at == len(items) - 1
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, within = args
            assert not (inside and most > 1), "a repeat within a repeat"
            assert most <= 300 or end or op is sre.POSSESSIVE_REPEAT, "an unbounded repeat in the middle"
            walk(within, inside or most > 1, False)
        elif op is sre.SUBPATTERN:
            walk(args[-1], inside, end)
        elif op is sre.BRANCH:
            for branch in args[1]:
                walk(branch, inside, end)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            walk(args[1], inside, False)
        elif op is sre.ATOMIC_GROUP:
            walk(args, inside, end)


def test_no_pattern_can_go_back_more_than_a_bounded_number_of_steps() -> None:
    assert len(patterns()) >= 30
    for pattern in patterns():
        walk(parser.parse(pattern.source, pattern.flags), False, True)


def sample(parsed: Any, rng: random.Random) -> str:
    """A text that the pattern may match: any way through it, but what it only looks at."""
    return "".join(part(op, args, rng) for op, args in parsed)


def part(op: Any, args: Any, rng: random.Random) -> str:
    if op is sre.LITERAL:
        return chr(args)
    if op is sre.BRANCH:
        return sample(rng.choice(args[1]), rng)
    if op is sre.SUBPATTERN:
        return sample(args[-1], rng)
    if op is sre.IN:
        return one_of(args[0] if args[0][0] is sre.NEGATE else rng.choice(args), rng)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        least, most, within = args
        return "".join(sample(within, rng) for _ in range(rng.randint(least, min(most, least + 4))))
    return ""


def one_of(member: tuple[Any, Any], rng: random.Random) -> str:
    op, args = member
    if op is sre.CATEGORY:
        return {sre.CATEGORY_DIGIT: "7", sre.CATEGORY_SPACE: " "}.get(args, rng.choice("a7"))
    return rng.choice("a7") if op is sre.NEGATE else chr(rng.randint(*args) if op is sre.RANGE else args)


@pytest.mark.parametrize("pattern", [one for one in patterns() if one.hints != ("",)], ids=lambda one: one.source[:40])  # fmt: skip
def test_whatever_a_pattern_matches_contains_one_of_its_hints(pattern: Pattern) -> None:
    rng, parsed = random.Random(7), parser.parse(pattern.source, pattern.flags)
    texts = chain((text.format(secret) for text, secret in MUST), (sample(parsed, rng) for _ in range(1000)))
    found = (match[0] for text in texts for match in pattern.compiled().finditer(text))
    matches = list(islice(found, None if SOAK else 200))
    assert len(matches) >= 100
    for match in matches:
        assert pattern.is_hinted(match) and (not pattern.flags & re.IGNORECASE or pattern.is_hinted(match.upper())), match  # fmt: skip


def test_a_hint_is_seen_in_whatever_letters_its_pattern_matches() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    hints = {hint for pattern in patterns() if pattern.flags & re.IGNORECASE for hint in pattern.hints}
    for letter in set("".join(hints)):
        for form in re.findall(re.escape(letter), everything, re.IGNORECASE):
            assert folded(form) == letter, (letter, form)


PIECES = [piece for text, secret in MUST for piece in text.format(secret).split()] + " ".join(
    MUST_NOT
).split()


def by_every_pattern(text: str) -> list[secrets.Span]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pattern, "is_hinted", lambda self, text: True)
        return find(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([" ", "\n", ": ", "=", ""]))
def test_hints_hide_no_secret_in_pieces_of_the_cases(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    assert find(text) == by_every_pattern(text)


def test_hints_hide_no_secret_in_the_cases_and_in_our_own_files() -> None:
    root = Path(__file__).parents[2]
    ours = ("server/vademecum/**/*.py", "tests/**/*.py") if SOAK else ("server/vademecum/model/**/*.py",)
    files = [file for some in (*ours, "*.md", "tests/unit/test_[os]*.py") for file in root.glob(some)]
    texts = [text.format(secret) for text, secret in MUST] + MUST_NOT + [file.read_text() for file in files]
    assert len(texts) > (300 if SOAK else 170)
    for text in texts:
        for asked in (text, text.upper()):
            assert find(asked) == by_every_pattern(asked)
