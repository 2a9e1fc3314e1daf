"""Names as Kubernetes allows them: DNS labels, subdomains, qualified names. Each returns why not, "" when fine."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253


def dns_label(name: str) -> str:
    """Why the name is no DNS label (RFC 1123)."""
    if len(name) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    if not _LABEL.fullmatch(name):
        return "must consist of lower case letters, digits or '-', and start and end with a letter or digit"
    return ""


def dns_subdomain(name: str) -> str:
    """Why the name is no DNS subdomain (RFC 1123)."""
    if len(name) > SUBDOMAIN_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH} characters"
    if not _SUBDOMAIN.fullmatch(name):
        return "must consist of lower case letters, digits, '-' or '.', and start and end with a letter or digit"
    return ""


def qualified_name(name: str) -> str:
    """Why the name is no qualified name (``example.com/key`` or ``key``), as labels and annotations have."""
    prefix, slash, local = name.rpartition("/")
    if "/" in prefix:
        return "must be a name with at most one '/'"
    if slash and not prefix:
        return "must have a prefix before '/'"
    if prefix:
        reason = dns_subdomain(prefix)
        if reason:
            return f"its prefix {reason}"
    if not local:
        return "must have a name part"
    if len(local) > LABEL_LENGTH:
        return f"its name part must be no more than {LABEL_LENGTH} characters"
    if not _QUALIFIED.fullmatch(local):
        return "must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    return ""


def label_value(value: str) -> str:
    """Why the text cannot be the value of a label."""
    if len(value) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    if value and not _QUALIFIED.fullmatch(value):
        return "must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    return ""


def config_key(key: str) -> str:
    """Why the text cannot be a key of a config map or secret, which may become a file name."""
    if len(key) > SUBDOMAIN_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH} characters"
    if not _CONFIG_KEY.fullmatch(key):
        return "must consist of letters, digits, '-', '_' or '.'"
    if key in {".", ".."}:
        return f"must not be {key!r}"
    if key.startswith(".."):
        return "must not start with '..'"
    return ""
