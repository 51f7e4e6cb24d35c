"""Prints the failed cases in a folder of JUnit files, so that they are at the end of a long output."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

LINES_MAX = 60


def main(folder: str):
    for path in sorted(Path(folder).glob("*.xml")):
        try:
            cases = ElementTree.parse(path).iter("testcase")
        except ElementTree.ParseError as error:
            print(f"-- {path.stem}: the file is not whole: {error}")
            continue
        for case in cases:
            for kind in ("failure", "error"):
                for found in case.iter(kind):
                    lines = (found.text or found.get("message") or "").splitlines()
                    print(f"-- {path.stem}: {case.get('name')}", *lines[-LINES_MAX:], sep="\n")


main(sys.argv[1])
