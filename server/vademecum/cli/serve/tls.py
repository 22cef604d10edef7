"""Check the TLS certificate and key before the server starts."""

from __future__ import annotations

import ssl
from pathlib import Path

from vademecum.errors import BadRequest
from vademecum.settings import Settings

# OpenSSL's error codes for the dates of a certificate.
DATE_ERRORS = {9: "is not valid yet", 10: "has expired"}
WRONG_KEY = "KEY_VALUES_MISMATCH"
STEPS_MAX = 8  # more steps than a handshake needs


def check(settings: Settings) -> str:
    """Check the certificate and key. Return a warning, or "". Raises BadRequest if the files cannot be used."""
    certificate = settings.tls_certificate
    if certificate is None:
        if settings.tls_key is not None:
            raise BadRequest("--tls-key needs --tls-certificate.")
        return ""
    problem = _check_dates(_load(certificate, settings.tls_key or certificate), certificate)
    return f"Warning: the certificate {certificate} {problem}: browsers will reject it." if problem else ""


def _load(certificate: Path, key: Path) -> ssl.SSLContext:
    def no_password() -> str:  # otherwise OpenSSL would ask on the terminal, and a service would hang
        raise BadRequest(
            f"The key {key} is encrypted. Decrypt it to a file that only the server can read: "
            f"`openssl pkey -in {key} -out NEW`."
        )

    for path in (certificate, key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise BadRequest(f"{path} cannot be read: {error.strerror}.") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ssl.SSLError) as error:
        if getattr(error, "reason", None) == WRONG_KEY:
            raise BadRequest(f"The key {key} does not belong to the certificate {certificate}.") from error
        raise BadRequest(
            f"The certificate {certificate} with the key {key} cannot be used: {error.strerror or error}. Both must be "
            "PEM files. Without --tls-key, the certificate file must contain the key, too."
        ) from error
    return context


def _check_dates(server: ssl.SSLContext, certificate: Path) -> str:
    """Return what is wrong with the certificate's dates, or "".

    Only the dates are checked, by a handshake in memory.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        client.load_verify_locations(cafile=certificate)
        ends = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
        for step in range(STEPS_MAX):
            try:
                ends[step % 2].do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        return DATE_ERRORS.get(error.verify_code, "")
    except ssl.SSLError:
        return ""
    return ""
