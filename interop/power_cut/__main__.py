"""Runs workloads on a server whose file operations are recorded, cuts the power at many moments, and checks promises.

    python3 -m power_cut                            a short run over all workloads
    python3 -m power_cut --cuts 500 --seed 7        a long one
    python3 -m power_cut --only subjects kv         workloads whose name begins so
    python3 -m power_cut --replay FOLDER            the cuts that have failed, once more
    python3 -m power_cut --replay FOLDER --journal  and the journal before each of them

Each run has several lives. A life is one run of the server, whose journal serves many cuts; the next life starts on
what one of these cuts has left. When a cut breaks a promise, the folder of its life is kept: the same cut can be made
again from the journal.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import sys
import tempfile

from harness.report import Report

from power_cut import selftest, workloads
from power_cut.ledger import Broken, Ledger
from power_cut.life import Cut, Life, Setting, compiled, to_json

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "..", ".cache", "power_cut")
# How many cuts the first, second, and third life of a run have.
CUTS_PER_LIFE = (8, 5, 3)
SHORT_CUTS = (3, 1)
WORKLOADS_PER_RUN = 6
# This workload writes so much that it runs alone, and only in long runs.
HEAVY = "segments"


def main():
    parser = argparse.ArgumentParser(prog="power_cut", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, help="how many cuts, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--mode", default="", help="how the disk forgets: a part of a name in disk.py")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long a life takes, at least")
    parser.add_argument("--replay", metavar="FOLDER")
    parser.add_argument("--journal", action="store_true", help="print the journal around a replayed cut")
    options = parser.parse_args()
    workloads.load()
    if options.replay:
        sys.exit(replay(options.replay, options.journal))
    sys.argv[1:] = []
    Campaign(options).play()


class Campaign:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.report = Report("power-cut")
        self.promises = 0
        self.failed_cuts = 0
        self.cuts = 0

    def play(self):
        with tempfile.TemporaryDirectory(prefix="power-cut-") as folder:
            library = compiled(folder)
            self.report.run("every call is in the journal", selftest.every_call_is_noted, library, f"{folder}/calls")
            self.report.run("the disk forgets what it may", selftest.the_disk_forgets, library, f"{folder}/forgets")
            for number, setting in enumerate(self.settings(), 1):
                case = f"run {number}: {setting}"
                try:
                    found = self.run(os.path.join(folder, "run"), setting, library)
                except Broken as error:
                    found = [str(error)]
                if found:
                    self.report.fail(case, "\n".join(found))
                else:
                    self.report.ok(case)
        print(f"      {self.cuts} cuts, {self.promises} promises; {self.failed_cuts} cuts broke one", flush=True)
        self.report.end()

    def settings(self):
        """Draws the settings of the runs from the seed."""
        names = [name for name in workloads.ALL if not self.options.only or name.startswith(tuple(self.options.only))]
        shuffled = random.Random(f"{self.options.seed}")
        is_short = self.options.cuts is None
        if is_short and not self.options.only:
            names.remove(HEAVY)
        for number in itertools.count():
            if is_short and not names or not is_short and self.cuts >= self.options.cuts:
                return
            if is_short:
                picked, names = names[:WORKLOADS_PER_RUN], names[WORKLOADS_PER_RUN:]
            else:
                picked = shuffled.sample(names, min(WORKLOADS_PER_RUN, len(names)))
                if HEAVY in picked:
                    picked = [HEAVY]
            yield Setting(
                seed=self.options.seed * 1_000 + number,
                workloads=tuple(picked),
                seconds=max(self.options.seconds, *(workloads.ALL[name].seconds for name in picked)),
                encryption=shuffled.choice([None, None, None, "aes", "chacha"]),
                sync_micros=shuffled.choice([0, 0, 300, 2_000]),
            )

    def run(self, folder: str, setting: Setting, library: str) -> list[str]:
        """Runs several lives, each on what a cut of the previous one has left. Returns the broken promises."""
        seed = random.Random(f"cuts {setting.seed}")
        per_life = SHORT_CUTS if self.options.cuts is None else CUTS_PER_LIFE
        problems: list[str] = []
        ledgers: dict[str, Ledger] = {}
        shutil.rmtree(folder, ignore_errors=True)
        life = Life(setting, os.path.join(folder, "life-1"))
        for number, count in enumerate(per_life, 1):
            os.makedirs(life.folder, exist_ok=True)
            try:
                life.live(library, ledgers)
            except BaseException:
                self.keep(life, [])
                raise
            # The next life starts with what one of these cuts leaves.
            next_ = Life(setting, os.path.join(folder, f"life-{number + 1}"))
            cuts = life.choose(count, seed, self.options.mode)
            chosen = seed.choice(cuts)
            failed = []
            for cut, at in life.played(cuts):
                broken, promises = life.check(at, cut)
                self.cuts += 1
                self.promises += promises
                if broken:
                    self.failed_cuts += 1
                    failed.append({"cut": to_json(cut), "broken": broken})
                    problems += self.told(setting, number, life, cut, broken)
                if cut == chosen:
                    life.rebuild(at, cut, next_.base)
                    ledgers = life.known(cut)
            if failed:
                problems.append(f"replay: python3 -m power_cut --replay {self.keep(life, failed)}")
                # A life on a broken store would only report the same again.
                if any(failure["cut"] == to_json(chosen) for failure in failed):
                    break
            shutil.rmtree(life.folder)
            life = next_
        shutil.rmtree(folder, ignore_errors=True)
        return problems

    def told(self, setting: Setting, number: int, life: Life, cut: Cut, broken: list[str]) -> list[str]:
        where = f"seed {setting.seed}, life {number}, cut {cut.index} of {len(life.entries)} ({cut.mode}, {cut.seed})"
        return [f"{where}: {promise}" for promise in broken]

    def keep(self, life: Life, failed: list[dict]) -> str:
        """Moves what a replay needs to a permanent folder and returns its path."""
        os.makedirs(KEPT, exist_ok=True)
        kept = tempfile.mkdtemp(prefix=f"{life.setting.seed}-", dir=KEPT)
        with open(os.path.join(kept, "run.json"), "w", encoding="utf-8") as file:
            json.dump({"setting": to_json(life.setting), "failed": failed}, file, indent=1)
        for name in ("base", "journal", "ledgers.json"):
            source = os.path.join(life.folder, name)
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(kept, name))
            elif os.path.exists(source):
                shutil.copy(source, os.path.join(kept, name))
        return os.path.relpath(kept)


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
