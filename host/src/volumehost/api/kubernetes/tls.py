"""The TLS context of connections to a cluster: whom to trust as Go's clients do, and the client's certificate.

Made by ``transport``, anew whenever certificates are replaced.
"""

from __future__ import annotations

import ssl

from volumehost.api.kubernetes.cluster_config import ClusterConfig
from volumehost.api.kubernetes.material import Material, MaterialFile
from volumehost.errors import ClusterConfigError


def tls_context(config: ClusterConfig, certificate: Material, key: Material) -> ssl.SSLContext:
    """A context that holds all that it needs: the files may go once it is made.

    As in Go, whatever the cluster's authority holds is trusted, be it the root or not, and an authority of before these
    rules were written need not follow all of them: Python from 3.13 on would refuse both.

    :raises ClusterConfigError: certificates cannot be used; before OpenSSL says so in its own words.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if config.authority:
        file = MaterialFile(config.authority)
        try:
            context.load_verify_locations(cafile=file.name)
        except (OSError, ssl.SSLError) as error:
            raise _unusable(config, "certificate authority", config.authority, error) from None
    else:
        context.load_default_certs()
    if certificate:
        files = MaterialFile(certificate), MaterialFile(key)
        try:
            context.load_cert_chain(files[0].name, files[1].name, password=lambda: "")
        except (OSError, ssl.SSLError) as error:
            raise _unusable(config, "client certificate and key", certificate, error) from None
    return context


def _unusable(config: ClusterConfig, what: str, material: Material, error: OSError) -> ClusterConfigError:
    where = material.path or "given inline"
    reason = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or type(error).__name__)
    if isinstance(error, ssl.SSLError):
        reason = f"not usable PEM ({error.reason or 'no certificate in it'})"
    return ClusterConfigError(
        f"the {what} ({where}): {reason}",
        action=f"use {config.origin}",
        subject=config.origin,
        hint="the key must not be encrypted and must belong to the certificate" if "client" in what else "",
    )
