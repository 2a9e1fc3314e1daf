"""Keys for certificates of pods: made here, and shown to a signer by an empty certificate signing request.

The ``cryptography`` distribution (the extra ``volumehost[pod-certificates]``) is imported nowhere else, and only when a
pod wants a certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from volumehost.errors import NotAvailableOnHostError, SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class NewKey(NamedTuple):
    """``private``: PEM, PKCS #8. ``request``: DER, PKCS #10, without a subject."""

    private: bytes
    request: bytes

    def __repr__(self) -> str:
        """Without the key."""
        return "NewKey(...)"


def new_key(key_type: str) -> NewKey:
    """A new key of one of Kubernetes' types: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.

    :raises SpecError: the type is none of them.
    :raises NotAvailableOnHostError: what makes keys is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
    except ImportError as error:
        raise NotAvailableOnHostError(
            "the distribution cryptography is not installed",
            action="making a key for a pod's certificate",
            hint="pip install 'volumehost[pod-certificates]'",
        ) from error
    key = _private_key(key_type)
    algorithm: Any = None if key_type == "ED25519" else hashes.SHA256()
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, algorithm)
    return NewKey(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        request.public_bytes(serialization.Encoding.DER),
    )


def _private_key(key_type: str) -> CertificateIssuerPrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    match key_type:
        case "ED25519":
            return ed25519.Ed25519PrivateKey.generate()
        case "ECDSAP256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ECDSAP384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ECDSAP521":
            return ec.generate_private_key(ec.SECP521R1())
        case "RSA3072" | "RSA4096":
            return rsa.generate_private_key(public_exponent=65537, key_size=int(key_type[3:]))
    raise SpecError(
        f"{key_type!r} is no type of key",
        action="making a key for a pod's certificate",
        hint="RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519",
    )


def chain_of(text: str) -> bytes:
    """The PEM blocks of a certificate chain, in their order, without what is between them and without headers."""
    lines: list[str] = []
    within = False
    for line in map(str.strip, text.splitlines()):
        within = within or line == _BEGIN
        if within and line and ":" not in line:
            lines.append(f"{line}\n")
        within = within and line != _END
    return "".join(lines).encode()
