"""Detect secrets by their format: a prefix that only keys have, or the position in a URL or a command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vademecum.model.secrets.entropy import has_digit
from vademecum.model.secrets.hinted_regex import Pattern, Span


def _key(shape: str, *hints: str) -> Pattern:
    return Pattern(rf"(?<![\w.-])(?:{shape})", re.ASCII, hints)


_KEYS = {
    "AWS key": _key(
        r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        *("AKIA", "ASIA", "ABIA", "ACCA", "AGPA", "AIDA", "AROA", "ANPA", "ANVA"),
    ),
    "GitHub token": _key(
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    "GitLab token": _key(
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w-]{20,}",
        *("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"),
    ),
    "Slack token": _key(r"(?:xox[a-z]|xapp)-[\w-]{10,}", "xox", "xapp-"),
    "Stripe key": _key(r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,}", "k_live_", "k_test_", "whsec_"),
    "API key": _key(r"sk-(?=[A-Za-z_-]{0,40}[0-9])[\w-]{20,}", "sk-"),
    "Google key": _key(r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}", "AIza", "ya29.", "GOCSPX-"),
    "npm token": _key(r"npm_[A-Za-z0-9]{30,}", "npm_"),
    "PyPI token": _key(r"pypi-[\w-]{30,}", "pypi-"),
    "Hugging Face token": _key(r"hf_[A-Za-z0-9]{30,}", "hf_"),
    "SendGrid key": _key(r"SG\.[\w-]{16,64}+\.[\w-]{16,}", "SG."),
    "DigitalOcean token": _key(r"do[opr]_v1_[a-f0-9]{40,}", "_v1_"),
    "Telegram token": _key(r"[0-9]{8,10}:[\w-]{35}(?![\w-])", *(f"{digit}:" for digit in "0123456789")),
    "token": _key(
        r"hv[sbr]\.[\w-]{20,}|dckr_[po]at_[\w-]{20,}|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}|lin_api_\w{30,}|tskey-[a-z]{1,10}-[\w-]{15,}"
        r"|glsa_\w{30,}|rubygems_[a-f0-9]{40,}|sbp_[a-f0-9]{40}|dapi[a-f0-9]{32}|figd_[\w-]{20,}|ATATT3[\w=-]{20,}|gsk_\w{20,}|r8_\w{30,}",
        *("hvs.", "hvb.", "hvr.", "dckr_", "shp", "lin_api_", "tskey-", "glsa_", "rubygems_", "sbp_", "dapi"),
        *("figd_", "ATATT3", "gsk_", "r8_"),
    ),
    "age key": _key(r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET-KEY-1"),
    "JWT": _key(r"eyJ[\w-]{8,4096}+\.[\w-]{8,16384}+\.[\w-]*+", "eyJ"),
}
_URL = Pattern(r"://[^\s/:@]{0,100}:(?P<secret>[^\s/]{1,200})@", hints=("://",))
# A URL with `TOKEN@host` or `TOKEN:x-oauth-basic@host`. `_is_token` distinguishes tokens from user names.
_USERINFO = Pattern(
    r"https?://(?P<secret>[\w.~+=%-]{8,300})(?::[^\s/@]{0,200})?@", re.ASCII | re.IGNORECASE, ("http",)
)
_SLACK_HOOK = Pattern(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{10,})",
    re.ASCII,
    ("hooks.slack.com/",),
)
_BEARER = Pattern(
    r"\b(?:Bearer|Basic|Token|Digest)\s{1,4}(?P<secret>[\w.~+/-]{12,}+={0,2})",
    re.ASCII | re.IGNORECASE,
    ("bearer", "basic", "token", "digest"),
)
# `_FLAG`: `--token …`. `_USER`: `curl -u name:…`, but not `docker -u 1000:1000`.
_FLAG = Pattern(
    r"(?<!\S)(?:sshpass\s-p|--[a-z-]{0,40}?(?:password|passwd|passphrase|token|secret|api-?key|(?:secret|access|auth)-key))"
    r"\s{1,3}[\"']?(?P<secret>[^\s\"'$<-][^\s\"']{3,200})",
    re.ASCII | re.IGNORECASE,
    ("pass", "token", "secret", "key"),
)
_USER = Pattern(
    r"(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"'/]{1,100}:(?!\d{1,9}(?!\S))(?P<secret>[^\s\"']{1,200})",
    re.ASCII,
    ("-u",),
)
# `mysql -pX`, `docker login -p X`, `redis-cli -a X`, `ssh-keygen -N X`. The secret is one word, or all text in quotes.
_COMMAND = Pattern(
    r"(?<![\w-])(?:mysql[a-z]{0,10}\s[^\n|;&]{0,200}?(?<=\s)-p|(?:docker|podman|az|oc|cf) login\s[^\n|;&]{0,200}?(?<=\s)-p\s"
    r"|redis-cli\s[^\n|;&]{0,200}?(?<=\s)-a\s|ssh-keygen\s[^\n|;&]{0,200}?(?<=\s)-[NP]\s{1,3}"
    r"|openssl\s[^\n|;&]{0,200}?(?<=\s)-(?:[kK]\s{1,3}|pass(?:in|out)?\s{1,3}[\"']?pass:))"
    r"[\"']?(?P<secret>(?<=[\"'])[^\s\"'$<][^\n\"']{0,200}|[^\s\"'$<-][^\s\"']{0,200})",
    re.ASCII,
    ("mysql", " login", "redis-cli", "ssh-keygen", "openssl"),
)
# `sqlcmd -P X`, `mongosh -p X`, `ldapsearch -w X`, `keytool -storepass X`, `zip -P X`, `twine upload -p X`,
# `smbclient -U name%X`, `gh secret set NAME --body X`.
_OPTION = Pattern(
    r"(?<![\w-])(?:(?:sqlcmd|bcp|zip|unzip)\s[^\n|;&]{0,200}?(?<=\s)-P\s{0,3}"
    r"|(?:mongo[a-z]{0,10}|twine)\s[^\n|;&]{0,200}?(?<=\s)-p\s{1,3}|ldap[a-z]{1,10}\s[^\n|;&]{0,200}?(?<=\s)-w\s{1,3}"
    r"|(?:keytool|jarsigner)\s[^\n|;&]{0,200}?(?<=\s)-(?:store|key|deststore|srcstore)pass\s{1,3}"
    r"|(?:smb|rpc)client\s[^\n|;&]{0,200}?(?<=\s)-U\s{0,3}[\"']?[^\s%\"']{1,100}%"
    r"|gh secret set\s[^\n|;&]{0,200}?(?<=\s)(?:--body|-b)[ =])"
    r"[\"']?(?P<secret>(?<=[\"'])[^\s\"'$<][^\n\"']{0,200}|[^\s\"'$<-][^\s\"']{0,200})",
    re.ASCII,
    ("sqlcmd", "bcp", "zip", "mongo", "twine", "ldap", "keytool", "jarsigner", "client", "gh secret"),
)
# `sshpass -pX`, `7z a -pX`, `wpa_passphrase NAME X`, `nmcli … password X`, `vault login X`, `ngrok … add-authtoken X`,
# `rclone obscure X`, `kubectl create secret … --from-literal=NAME=X`, `fly secrets set NAME=X`, `requirepass X`,
# `net use … /user:NAME X`. Ordinary words may follow some of these commands. So the secret of `vault login` must
# contain a digit or a dot, and the secret of `requirepass` must end its line.
_WORDS = Pattern(
    r"(?<![\w-])(?:sshpass\s-p|(?:7z[a-z]?|rar|unrar)\s[^\n|;&]{0,200}?(?<=\s)-p|wpa_passphrase\s[^\n|;&]{1,40}?\s"
    r"|nmcli\s[^\n|;&]{0,200}?\spassword\s|vault\slogin\s(?=[A-Za-z]{0,40}[0-9.])|ngrok\s[^\n|;&]{0,40}?authtoken\s|rclone\sobscure\s"
    r"|kubectl\s[^\n|;&]{0,60}?secret\s[^\n|;&]{0,100}?--from-literal[= ][^\s=]{1,100}="
    r"|(?:fly|flyctl)\ssecrets\sset\s[^\s=]{1,100}=|(?:requirepass|masterauth)\s{1,9}(?=\S{1,200}[ \t]{0,3}(?:\n|\Z))"
    r"|net\suse\s[^\n|;&]{0,200}?/user:\S{1,100}\s(?!/))"
    r"[\"']?(?P<secret>(?<=[\"'])[^\s\"'$<][^\n\"']{0,200}|[^\s\"'$<-][^\s\"']{3,200})",
    re.ASCII,
    (
        "sshpass",
        "7z",
        "rar",
        "wpa_passphrase",
        "nmcli",
        "vault",
        "ngrok",
        "rclone",
        "kubectl",
        "fly",
        "requirepass",
        "masterauth",
        "net use",
    ),
)
# `IDENTIFIED BY 'X'` and `ALTER USER ada PASSWORD 'X'` in SQL.
_SQL = Pattern(
    r"\b(?:identified\s{1,3}(?:with\s{1,3}[\w'\"]{1,60}\s{1,3})?by|(?:alter|create)\s{1,3}(?:user|role|login)\s[^\n;]{1,200}?\bpassword)"
    r"(?:\s{0,3}=)?\s{1,3}['\"](?P<secret>[^\n'\"]{1,200})['\"]",
    re.ASCII | re.IGNORECASE,
    ("identified", "password"),
)
# `<password>X</password>` in XML, as Maven and many other programs use it.
_ELEMENT = Pattern(
    r"<[\w:.-]{0,40}?(?:password|passwd|passphrase|secret|token|api-?key|private-?key)>\s{0,9}(?P<secret>[^<>\s$][^<>\n]{0,300})</",
    re.ASCII | re.IGNORECASE,
    ("pass", "secret", "token", "key"),
)
# An entry of `.netrc`, on one line or on three.
_NETRC = Pattern(
    r"\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(?P<secret>[^\s$<]{1,200})", re.ASCII, ("login",)
)
# `set -x TOKEN X`, `setenv TOKEN X`, `aws configure set aws_secret_access_key X`: the name of the variable shows that
# its value is a secret.
_SETTING = Pattern(
    r"(?<![\w-])(?:set\s-[A-Za-z-]{1,10}|setenv|(?:configure|config)\sset)\s{1,3}[^\s=]{0,60}?"
    r"(?:password|passwd|passphrase|secret|token|api_?key|access_key)(?!_?id)[\w.-]{0,20}\s{1,3}"
    r"[\"']?(?P<secret>(?<=[\"'])[^\s\"'$<][^\n\"']{0,200}|[^\s\"'$<-][^\s\"']{2,200})",
    re.ASCII | re.IGNORECASE,
    ("set -", "setenv", " set"),
)
# `_PIPED`: `echo X | sudo -S`. `_HERE`: `sudo -S <<< X`. Both include other commands that read a password from stdin.
_PIPED = Pattern(
    r"(?<![\w-])(?:echo|printf)\s{1,3}(?:-[neE]{1,3}\s{1,3})?(?:[\"']?%s(?:\\n)?[\"']?\s{1,3})?[\"']?"
    r"(?P<secret>[^\s\"'$<|][^\n\"'|]{0,200}?)[\"']?\s{0,3}\|\s{0,3}"
    r"(?:[^\n|;&]{0,50}?sudo[^\n|;&]{0,50}?\s(?:-[A-Za-z]{0,8}?S|--stdin)|[^\n|;&]{0,100}?(?:--password-stdin|--with-token|chpasswd))",
    re.ASCII,
    ("sudo", "--password-stdin", "--with-token", "chpasswd"),
)
_HERE = Pattern(
    r"(?<![\w-])(?:sudo[^\n|;&<]{0,50}?\s(?:-[A-Za-z]{0,8}?S|--stdin)|chpasswd|--password-stdin|--with-token)[^\n|;&<]{0,100}?"
    r"<<<\s{0,3}[\"']?(?P<secret>(?<=[\"'])[^\s\"'$<][^\n\"']{0,200}|[^\s\"'$<][^\s\"']{0,200})",
    re.ASCII,
    ("<<<",),
)
# The cookie values in `Cookie: a=X; b=Y` and `curl -b a=X`. Cookie attributes, such as `Path`, are not secrets.
_COOKIES = (
    Pattern(
        r"(?<![\w-])(?:set-)?cookie[\"']{0,2}\s{0,3}:\s{0,3}[\"']?(?P<cookies>[^\n\"']+)",
        re.ASCII | re.IGNORECASE,
        ("cookie",),
    ),
    Pattern(
        r"(?:(?<!\S)--cookie[ =]|(?<![\w-])curl[^|;\n]{0,300}?\s-b\s{0,3})(?P<cookies>[\"'][^\n\"']+|[^\s\"']+)",
        re.ASCII,
        ("--cookie", "curl"),
    ),
)
_COOKIE = Pattern(
    r"(?<![^\s;\"'])(?!(?:path|domain|expires|max-age|samesite|version|priority)=)[^\s=;:,\"'<>$]{1,100}="
    r"(?P<secret>[^\s;,\"'$<{\[][^\s;\"']{3,})",
    re.ASCII | re.IGNORECASE,
    ("=",),
)
# `curl -uname:X`, with any other option letters before the `u`. Unlike in `_USER`, the space after the option is
# optional, and a password may consist of digits only.
_CURL = Pattern(
    r"(?<![\w-])curl\s[^|;]{0,300}?(?<=\s)(?:-[A-Za-z#]{0,8}?[uU]\s{0,3}|--(?:proxy-)?user[ =])[\"']?"
    r"[^\s:\"'/]{1,100}:(?P<secret>[^\s\"']{1,200})",
    re.ASCII,
    ("curl",),
)
_HTPASSWD = Pattern(r"(?<![\w-])htpasswd\s[^\n|;&]{1,300}", re.ASCII, ("htpasswd",))
_WORD = Pattern(r"\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"']{1,300}")
TOKEN_MIN = 20  # minimum length in characters of a token without digits; user names are shorter
_PEM = Pattern(r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----", hints=("PRIVATE KEY",))


def by_shape(text: str) -> Iterator[Span]:
    for kind, key in _KEYS.items():
        for found in key.finditer(text):
            yield Span(*found.span(), kind)
    for pattern, kind in (
        (_URL, "password in an address"),
        (_SLACK_HOOK, "Slack hook"),
        (_FLAG, "password of a command"),
        (_USER, "password of a command"),
        (_COMMAND, "password of a command"),
        (_OPTION, "password of a command"),
        (_WORDS, "password of a command"),
        (_SQL, "password of a command"),
        (_ELEMENT, "value of a secret name"),
        (_NETRC, "value of a secret name"),
        (_SETTING, "value of a secret name"),
        (_CURL, "password of a command"),
        (_PIPED, "password of a command"),
        (_HERE, "password of a command"),
    ):
        for found in pattern.finditer(text):
            yield Span(*found.span("secret"), kind)
    for found in _BEARER.finditer(text):
        if has_digit(found["secret"]):  # so that "the bearer notwithstanding" does not count as a token
            yield Span(*found.span("secret"), "bearer token")
    for found in _USERINFO.finditer(text):
        if _is_token(found["secret"]):
            yield Span(*found.span("secret"), "token in an address")
    for given in (cookies for pattern in _COOKIES for cookies in pattern.finditer(text)):
        for found in _COOKIE.compiled().finditer(text, *given.span("cookies")):
            yield Span(*found.span("secret"), "cookie")
    yield from _htpasswd(text)
    yield from _pem(text)


def _is_token(user: str) -> bool:
    """Return whether the text before the `@` is a token and not a user name, which may end with a number."""
    return has_digit(user.rstrip("0123456789")) or (len(user) >= TOKEN_MIN and user.isalnum())


def _htpasswd(text: str) -> Iterator[Span]:
    """Yield the password X of `htpasswd -b FILE USER X`, or of `htpasswd -nb USER X`, which has no file.

    Options and their values do not count as words of the command.
    """
    for command in _HTPASSWD.finditer(text):
        words = list(_WORD.compiled().finditer(text, command.start() + len("htpasswd"), command.end()))
        options = "".join(word[0] for word in words if word[0].startswith("-"))
        if "b" not in options:
            continue
        costs = {at + 1 for at, word in enumerate(words) if word[0] in ("-C", "-r")}
        named = [word for at, word in enumerate(words) if not word[0].startswith("-") and at not in costs]
        secret = next(iter(named[1 if "n" in options else 2 :]), None)
        if secret is not None and secret[0][:1] not in "$<>":
            quoted = secret[0][0] in "\"'"
            yield Span(secret.start() + quoted, secret.end() - quoted, "password of a command")


def _pem(text: str) -> Iterator[Span]:
    """Yield each private key in PEM format up to its end marker, or to the end of the text if the key is truncated."""
    after = 0
    for begin in _PEM.finditer(text):
        if begin.start() < after:
            continue
        end = text.find("-----END ", begin.end())
        closing = text.find("-----", end + 9) if end >= 0 else -1
        after = closing + 5 if closing >= 0 else len(text)
        yield Span(begin.start(), after, "private key")
