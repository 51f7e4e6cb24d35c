"""Makes the cuts that have failed once more.

    python3 -m power_cut FOLDER            the folder that the failure names
    python3 -m power_cut FOLDER --journal  also prints the journal before each cut
"""

import argparse
import json
import os
import sys

from power_cut import workloads
from power_cut.life import Cut, Life, Setting


def main():
    parser = argparse.ArgumentParser(prog="power_cut", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--journal", action="store_true", help="print the journal around each cut")
    options = parser.parse_args()
    workloads.load()
    sys.exit(replay(options.folder, options.journal))


def replay(folder: str, shows_journal: bool) -> int:
    """Makes the failed cuts once more. Returns the exit status."""
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        kept = json.load(file)
    setting = kept["setting"]
    life = Life(Setting(**setting | {"workloads": tuple(setting["workloads"])}), os.path.abspath(folder))
    life.load()
    cuts = sorted((Cut(**failure["cut"]) for failure in kept["failed"]), key=lambda cut: cut.index)
    has_failed = False
    for cut, at in life.played(cuts):
        print(f"cut {cut.index} of {len(life.entries)} ({cut.mode}, {cut.seed})")
        if shows_journal:
            begin = max(0, cut.index - 60)
            for number, entry in enumerate(life.entries[begin : cut.index + 1], begin):
                print(f"  {number} {entry.nanos} {entry}")
        broken, _ = life.check(at, cut)
        has_failed |= bool(broken)
        for promise in broken or ["nothing is broken"]:
            print(f"  {promise}")
    return 1 if has_failed else 0


main()
