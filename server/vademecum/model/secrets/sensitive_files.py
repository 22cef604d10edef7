"""Recognize files that exist to store secrets. For an action on such a file, no text is recorded.

The path alone decides, because a password may look like any word. Source code, notes, public keys and examples do not
count, whatever their names.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES = _words(
    ".env .envrc .flaskenv .pgpass pgpass.conf .netrc _netrc .npmrc .pypirc .git-credentials .htpasswd .my.cnf "
    ".mylogin.cnf .dockercfg .dockerconfigjson .vault-token .s3cfg .boto .terraformrc kubeconfig .kubeconfig"
)
_ENDS = tuple(
    _words(
        ".pem .key .p8 .p12 .pfx .jks .keystore .kdbx .ppk .keytab .ovpn .env .kubeconfig .tfvars .tfvars.json .tfstate "
        ".tfstate.backup"
    )
)
_PLACES = tuple(
    _words(  # these filenames count only in their folders, because they are common elsewhere
        "/.kube/config /.docker/config.json /.config/gh/hosts.yml /.codex/auth.json /.composer/auth.json /.m2/settings.xml "
        "/.config/rclone/rclone.conf /etc/shadow /etc/gshadow"
    )
)
_BEGINNINGS = (".env.", ".env-", ".env_", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
# Files in `.ssh` that contain no secrets.
_OPEN = _words("config known_hosts known_hosts.old authorized_keys environment rc")
_ACCOUNTS = ("client_secret", "service-account", "service_account")
_CALLED = ("secret", "secrets", "password", "passwords")
_DATA = _words(
    "json yaml yml toml ini cfg conf cnf csv tsv txt xml properties plist enc gpg age db env bak old"
)
_SOURCE = _words(
    "py pyi ipynb go rs ts tsx js jsx mjs cjs java kt swift c h cc cpp hpp cs rb php ex exs lua vue svelte sql tf proto "
    "html css md rst adoc sh"
)
_NOT_REAL = _words("example sample template tmpl dist defaults pub")


def holds_secrets(path: str) -> bool:
    """Return whether a file with this path exists to store secrets. Windows paths are accepted, too."""
    whole = "/" + path.lower().replace("\\", "/")
    folder, _, name = whole.rpartition("/")
    stem, *ends = name.lstrip("._").split(".")
    last = ends[-1] if ends else ""
    if last in _SOURCE or _NOT_REAL.intersection(ends):
        return False
    if name in _NAMES or whole.endswith(_PLACES) or name.endswith(_ENDS) or name.startswith(_BEGINNINGS):
        return True
    if folder.endswith("/.ssh"):
        return name not in _OPEN
    return (not ends or last in _DATA) and _is_called_so(stem)


def _is_called_so(stem: str) -> bool:
    words = stem.replace("_", "-").split("-")
    return "credential" in stem or words[-1] in _CALLED or stem.startswith(_ACCOUNTS)
