"""The settings of the runs: a short run over all workloads, or a campaign of any length."""

import math
import os
import random
import shutil
import tempfile

import pytest

from harness.server import compiled
from power_cut import workloads
from power_cut.life import Setting

# How many cuts the first, second, and third life of a run have.
CUTS_PER_LIFE = (8, 5, 3)
SHORT_CUTS = (3, 1)
WORKLOADS_PER_RUN = 6
# This workload writes so much that it runs alone, and only in campaigns.
HEAVY = "segments"


def pytest_addoption(parser):
    group = parser.getgroup("power cuts")
    group.addoption("--cuts", type=int, help="a campaign of this many cuts, at least")
    group.addoption("--seed", type=int, default=1)
    group.addoption("--only", action="append", default=[], metavar="NAME", help="workloads whose name begins so")
    group.addoption("--mode", default="", help="how the disk forgets: a part of a name in disk.py")
    group.addoption("--seconds", type=float, default=0.0, help="how long a life takes, at least")


def pytest_generate_tests(metafunc):
    if "setting" in metafunc.fixturenames:
        workloads.load()
        metafunc.parametrize("setting", list(settings(metafunc.config.option)), ids=str)


def settings(options):
    """Draws the settings of the runs from the seed."""
    names = [name for name in workloads.ALL if not options.only or name.startswith(tuple(options.only))]
    shuffled = random.Random(f"{options.seed}")
    is_short = options.cuts is None
    if is_short and not options.only:
        names.remove(HEAVY)
    runs = math.ceil(len(names) / WORKLOADS_PER_RUN) if is_short else math.ceil(options.cuts / sum(CUTS_PER_LIFE))
    for number in range(runs):
        if is_short:
            picked = names[number * WORKLOADS_PER_RUN :][:WORKLOADS_PER_RUN]
        else:
            picked = shuffled.sample(names, min(WORKLOADS_PER_RUN, len(names)))
            if HEAVY in picked:
                picked = [HEAVY]
        yield Setting(
            seed=options.seed * 1_000 + number,
            workloads=tuple(picked),
            seconds=max(options.seconds, *(workloads.ALL[name].seconds for name in picked)),
            encryption=shuffled.choice([None, None, None, "aes", "chacha"]),
            sync_micros=shuffled.choice([0, 0, 300, 2_000]),
        )


@pytest.fixture
def cuts_per_life(pytestconfig) -> tuple[int, ...]:
    return SHORT_CUTS if pytestconfig.option.cuts is None else CUTS_PER_LIFE


@pytest.fixture
def folder():
    folder = tempfile.mkdtemp(prefix="power-cut-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def library():
    """The library that records the server's calls."""
    with tempfile.TemporaryDirectory(prefix="power-cut-") as folder:
        yield compiled(os.path.join(os.path.dirname(__file__), "forgetful.c"), folder)
