"""Measures the latency of an honest client's messages during attacks, with Fanline and with nats-server.

    cd interop && SERVER=… NATS_SERVER=… python3 -m attack_latency [--seconds 2] [--rounds 3] [words]

It has no pass or fail, so CI does not run it. Each round starts both servers, in alternating order. The attacker is
a separate process that attacks as fast as it can. The honest client sends a message to itself, waits for it, and
pauses for a millisecond.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time

from attack_latency.attacks import ATTACKS, Target
from harness.peer import CONNECT, Peer
from harness.server import Server, server_under_test

# Time for the attack to start before latencies are measured.
WARM_SECONDS = 0.5
REST_SECONDS = 0.001


def attack_forever(attack, target: Target, has_begun):
    has_begun.set()
    while True:
        attack(target)


def latencies(port: int, seconds: float) -> list[float]:
    found = []
    connect = CONNECT.replace(b"{", b'{"user":"ada","pass":"pw",')
    with Peer(port, connect) as honest:
        honest.send(b"SUB honest 1\r\n")
        honest.flush()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            start = time.perf_counter()
            honest.send(b"PUB honest 5\r\nhello\r\n")
            honest.message()
            found.append(time.perf_counter() - start)
            time.sleep(REST_SECONDS)
    return found


def measure(binary: str, attack, seconds: float) -> tuple[float, float]:
    """Returns p50 and p99 in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        target = Target(folder)
        with Server(binary, "-c", target.config()) as server:
            target.port = server.port
            target.prepare()
            has_begun = multiprocessing.Event()
            attacker = multiprocessing.Process(target=attack_forever, args=(attack, target, has_begun), daemon=True)
            attacker.start()
            has_begun.wait()
            time.sleep(WARM_SECONDS)
            found = sorted(latencies(server.port, seconds))
            is_attacking = attacker.is_alive()
            attacker.kill()
            attacker.join()
            if not is_attacking:
                raise RuntimeError("the attacker has ended")
    return found[len(found) // 2] * 1e3, found[len(found) * 99 // 100] * 1e3


def main():
    options = argparse.ArgumentParser(prog="attack_latency")
    options.add_argument("--seconds", type=float, default=2)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("words", nargs="*")
    options = options.parse_args()
    binaries = {"fanline": server_under_test(), "nats-server": os.environ["NATS_SERVER"]}
    print("| attack | Fanline p50 / p99 | nats-server p50 / p99 | p99 |")
    print("| --- | --- | --- | --- |")
    for name, attack in ATTACKS.items():
        if options.words and not any(word in name for word in options.words):
            continue
        samples = {server: [] for server in binaries}
        for round_number in range(options.rounds):
            order = list(binaries) if round_number % 2 == 0 else list(binaries)[::-1]
            for server in order:
                samples[server].append(measure(binaries[server], attack, options.seconds))
        middle = {server: [statistics.median(each) for each in zip(*of)] for server, of in samples.items()}
        ours, theirs = middle["fanline"], middle["nats-server"]
        texts = [f"{p50:.2f} / {p99:.2f} ms" for p50, p99 in (ours, theirs)]
        print(f"| {name} | {texts[0]} | {texts[1]} | {ours[1] / theirs[1]:.2f}× |", flush=True)


if __name__ == "__main__":
    main()
