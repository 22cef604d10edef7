"""The files by which the server speaks HTTPS, looked at before anything is begun."""

from __future__ import annotations

import ssl
from pathlib import Path

from vademecum.errors import BadRequest
from vademecum.settings import Settings

# What OpenSSL says of a certificate's dates.
OUT_OF_DATE = {9: "is not valid yet", 10: "has expired"}
WRONG_KEY = "KEY_VALUES_MISMATCH"
FLIGHTS = 8  # more than a handshake has


def check(settings: Settings) -> str:
    """A warning, if there is one. Raises BadRequest when the files cannot be used."""
    certificate = settings.tls_certificate
    if certificate is None:
        if settings.tls_key is not None:
            raise BadRequest("--tls-key needs --tls-certificate.")
        return ""
    said = _out_of_date(_loaded(certificate, settings.tls_key or certificate), certificate)
    return f"Warning: the certificate {certificate} {said}: browsers will refuse it." if said else ""


def _loaded(certificate: Path, key: Path) -> ssl.SSLContext:
    def no_password() -> str:  # else OpenSSL asks at the terminal, and a service waits for ever
        raise BadRequest(
            f"The key {key} is encrypted, and a server starts when nobody is there to type. Write one without its "
            f"password, readable to the server alone: `openssl pkey -in {key} -out NEW`."
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
            f"The certificate {certificate} with the key {key} cannot be used: {error.strerror or error}. Both are PEM "
            "files; without --tls-key, the certificate's holds its key, too."
        ) from error
    return context


def _out_of_date(server: ssl.SSLContext, certificate: Path) -> str:
    """What its dates say to a client that trusts it and nothing else. Other doubts are the clients' business."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        client.load_verify_locations(cafile=certificate)
        ends = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
        for at in range(FLIGHTS):
            try:
                ends[at % 2].do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        return OUT_OF_DATE.get(error.verify_code, "")
    except ssl.SSLError:
        return ""
    return ""
