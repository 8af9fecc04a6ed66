"""Addresses as they may be shown: a connection string can hold a password, so only its kind is printed."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_SECRET = re.compile(r"@|passw|://|\b(postgres|postgresql|jdbc|mysql|spark|duckdb):", re.IGNORECASE)

HIDDEN = "(not shown, it may hold a password)"


def parts(source: str) -> tuple[str, str] | None:
    """The kind of a connection string, in lower case, and the rest; None if the text is no such thing but a path."""
    match = _ADDRESS.fullmatch(source)
    return None if match is None else (match[1].lower(), match[2])


def shown(source: str) -> str:
    """The source as it may be printed; what is no address but looks like a mistyped one is hidden whole."""
    found = parts(source)
    if found is not None:
        return source if found[0] == "duckdb" else f"{found[0]}://..."
    return HIDDEN if _SECRET.search(source) else source


def masked(text: str) -> str:
    """A text in which every address is as it may be printed."""
    return re.sub(r"[A-Za-z][A-Za-z0-9+.-]+://[^'\"\n]*", lambda match: shown(match[0]), text)
