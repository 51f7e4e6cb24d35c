"""Runs workloads on a server whose file operations are recorded, cuts the power at many moments, and checks promises.

Each run has several lives. A life is one run of the server, whose journal serves many cuts; the next life starts on
what one of these cuts has left. When a cut breaks a promise, the folder of its life is kept: `python3 -m power_cut`
makes the same cut again from the journal.
"""

import json
import os
import random
import shutil
import tempfile

import pytest

from power_cut.ledger import Ledger
from power_cut.life import Life, to_json

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".cache", "power_cut")


# With `--seconds` and many workloads, a run may take long.
@pytest.mark.timeout(3600)
def test_run(setting, library: str, folder: str, cuts_per_life, pytestconfig, record_property):
    """Runs several lives, each on what a cut of the previous one has left."""
    seed = random.Random(f"cuts {setting.seed}")
    problems: list[str] = []
    ledgers: dict[str, Ledger] = {}
    all_promises = 0
    life = Life(setting, os.path.join(folder, "life-1"))
    for number, count in enumerate(cuts_per_life, 1):
        os.makedirs(life.folder, exist_ok=True)
        try:
            life.live(library, ledgers)
        except BaseException:
            keep(life, [])
            raise
        # The next life starts with what one of these cuts leaves.
        next_ = Life(setting, os.path.join(folder, f"life-{number + 1}"))
        cuts = life.choose(count, seed, pytestconfig.option.mode)
        chosen = seed.choice(cuts)
        failed = []
        for cut, at in life.played(cuts):
            broken, promises = life.check(at, cut)
            all_promises += promises
            if broken:
                failed.append({"cut": to_json(cut), "broken": broken})
                where = f"seed {setting.seed}, life {number}, cut {cut.index} of {len(life.entries)} ({cut.mode}, {cut.seed})"
                problems += [f"{where}: {promise}" for promise in broken]
            if cut == chosen:
                life.rebuild(at, cut, next_.base)
                ledgers = life.known(cut)
        if failed:
            problems.append(f"replay: python3 -m power_cut {keep(life, failed)}")
            # A life on a broken store would only report the same again.
            if any(failure["cut"] == to_json(chosen) for failure in failed):
                break
        shutil.rmtree(life.folder)
        life = next_
    record_property("promises", all_promises)
    assert not problems, "\n".join(problems)
    # A run that checks nothing would pass.
    assert all_promises > 0, "no promise was checked"


def keep(life: Life, failed: list[dict]) -> str:
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
