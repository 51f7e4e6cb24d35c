"""Random faults for some seconds; `-- --seconds 600 --seed 7` sets length and seed."""

import random

from replicated.load import Load
from replicated.servers import Cluster
from replicated.soak import Soak
from replicated.test_failover import judge


def test_soak(cluster: Cluster, record_property, pytestconfig):
    seed = pytestconfig.option.seed
    if seed is None:
        seed = random.randrange(10_000)
    record_property("seed", seed)
    soak = Soak(seed, pytestconfig.option.seconds)
    try:
        judge(cluster, record_property, Load(cluster, "SOAK"), soak)
    finally:
        record_property("faults", f"{len(soak.done)}: {soak.done[:50]}")
        print(f"seed {seed}; faults: {soak.done}")
