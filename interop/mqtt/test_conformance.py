"""Checks docs/reference/mqtt-conformance.md: every numbered statement of both standards must have a row, and
every test in it must exist."""

import glob
import importlib
import os
import re

from mqtt.case import TITLES

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COVERAGE = os.path.join(ROOT, "docs", "reference", "mqtt-conformance.md")
HEADING = "# MQTT, clause by clause"
ENGINE = "crates/fanline-engine/src"
FOLDERS = [f"{ENGINE}/{folder}" for folder in ("codec", "codec/mqtt", "codec/websocket", "session/mqtt", "session/mqtt/registry")]
INTEGRATION = "crates/fanline-server/tests/it"

# Sections with their number of statements (appendix B of each standard). 2.2.1 of 5.0 begins with 2.
STATEMENTS_5 = """
1.5.4:3 1.5.5:1 1.5.7:1 2.1.3:1 2.2.1:6 2.2.2:1 3.1.0:2 3.1.2:30 3.1.3:12 3.1.4:6 3.2.0:2 3.2.2:22 3.3.1:13 3.3.2:20
3.3.4:10 3.4.2:3 3.5.2:3 3.6.1:1 3.6.2:3 3.7.2:3 3.8.1:1 3.8.3:5 3.8.4:8 3.9.2:2 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6
3.11.2:2 3.11.3:2 3.12.4:1 3.14.0:1 3.14.1:1 3.14.2:4 3.14.4:3 3.15.1:1 3.15.2:3 4.1.0:2 4.2.0:1 4.3.1:1 4.3.2:5
4.3.3:13 4.4.0:2 4.5.0:2 4.6.0:6 4.7.0:1 4.7.1:2 4.7.2:1 4.7.3:4 4.8.2:6 4.9.0:3 4.12.0:7 4.12.1:2 4.13.1:1 4.13.2:1
6.0.0:4
"""
NO_STATEMENTS = {"2.2.1-1"}
STATEMENTS_4 = """
1.5.3:3 2.2.2:2 2.3.1:7 3.1.0:2 3.1.2:24 3.1.3:11 3.1.4:5 3.2.0:1 3.2.2:6 3.3.1:12 3.3.2:3 3.3.4:1 3.3.5:2 3.6.1:1
3.8.1:1 3.8.3:4 3.8.4:6 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.12.4:1 3.14.1:1 3.14.4:3 4.1.0:2 4.3.1:1 4.3.2:2 4.3.3:2
4.4.0:1 4.5.0:2 4.6.0:6 4.7.1:3 4.7.2:1 4.7.3:4 4.8.0:2 6.0.0:4 7.0.0:2 7.1.1:1 7.1.2:1
"""


def test_conformance():
    for path in glob.glob(os.path.join(os.path.dirname(__file__), "test_*.py")):
        importlib.import_module(f"mqtt.{os.path.basename(path).removesuffix('.py')}")
    assert len(set(TITLES)) == len(TITLES), "two cases have the same title"
    with open(COVERAGE, encoding="utf-8") as file:
        text = file.read()
    wrong = [*unknown_cases(text, TITLES), *unknown_tests(text), *missing_statements(text.split(HEADING)[1])]
    assert not wrong, "; ".join(wrong)


def unknown_cases(text: str, titles: list[str]) -> list[str]:
    known = {title.split(" (")[0] for title in titles}
    groups = {title.split(":")[0] for title in known}
    named = set(re.findall(r"`([\w.'-]+(?: \w+)*: [a-z0-9_ ]+)`", text))
    return sorted(f"no case {name}" for name in named if name.split(":")[0] in groups and name not in known)


def unknown_tests(text: str) -> list[str]:
    """Finds Rust tests: a file, followed by names of functions."""
    wrong = []
    for file, names in re.findall(r"`((?:it/(?:mqtt/)?|websocket/)?\w+\.rs)`: ((?:`\w+`(?:, )?)+)", text):
        source = "".join(map(read, places(file)))
        wrong += [f"no test {file}: {name}" for name in re.findall(r"`(\w+)`", names) if f"fn {name}(" not in source]
    return wrong


def places(file: str) -> list[str]:
    folders = [INTEGRATION] if file.startswith("it/") else FOLDERS
    return [os.path.join(ROOT, folder, file.removeprefix("it/")) for folder in folders]


def read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def missing_statements(text: str) -> list[str]:
    table, rest = text.split("For clients alone:")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]
    for_clients = rest.split("What a server")[0].replace("\n", " ")
    five, four = for_clients.split("of 5.0;")
    wrong = []
    for version, wanted, column, apart in (("5.0", STATEMENTS_5, 0, five), ("3.1.1", STATEMENTS_4, 1, four.split("of 3.1.1")[0])):
        found = {number for row in rows for number in numbers(row[column])} | numbers(apart)
        missing = every(wanted) - found
        wrong += [f"{version}: no row for {number}" for number in sorted(missing)]
    return wrong


def every(counts: str) -> set[str]:
    pairs = [entry.split(":") for entry in counts.split()]
    return {f"{section}-{n}" for section, count in pairs for n in range(1, int(count) + 1)} - NO_STATEMENTS


def numbers(cell: str) -> set[str]:
    """Parses a list such as `3.1.2-4, -6 to -8, 4.1.0-1`, and ignores words. The text of 3.1.1 has one `3-8.3-4`."""
    found, section = set(), ""
    for new, first, last in re.findall(r"(\d+\.\d+\.\d+)?-(\d+)(?: to -(\d+))?", cell.replace("3-8.3-4", "3.8.3-4")):
        section = new or section
        found |= {f"{section}-{n}" for n in range(int(first), int(last or first) + 1)}
    return found
