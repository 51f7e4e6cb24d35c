"""The cases by theme. Each file must be listed here."""

import importlib

GROUPS = (
    "connecting", "malformed", "publishing", "subscribing", "retaining", "wills", "sessions", "crashes",
    "crossing", "permissions", "paho", "tools", "programs",
)


def load():
    for group in GROUPS:
        importlib.import_module(f"mqtt.cases.{group}")
