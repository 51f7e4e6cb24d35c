"""Faults of servers while a stream is used. Each waits until the load goes on without the failed servers, if it can, and
again with all of them."""

import signal
import time
from collections.abc import Callable

from leaf.stage import Node
from replicated.load import Load
from replicated.servers import LAG_MAX, end

# Less than nodes of nats-server wait for their leader.
PAUSE_SECONDS = 5


def leader_ends(how: int) -> Callable[[Load], None]:
    def trouble(load: Load):
        load.further()
        leader = load.cluster.leader(load.stream)
        end(leader, how)
        load.further()
        comes_back(load, leader)

    return trouble


def comes_back(load: Load, node: Node):
    node.start()
    load.cluster.until_whole()
    load.cluster.until_current(load.stream, LAG_MAX)
    load.further()


def leader_pauses(load: Load):
    """The leader does not run for some seconds, and does not know it."""
    load.further()
    leader = load.cluster.leader(load.stream)
    leader.server.signal(signal.SIGSTOP)
    time.sleep(PAUSE_SECONDS)
    leader.server.signal(signal.SIGCONT)
    load.further()
    load.cluster.until_current(load.stream, LAG_MAX)
    load.further()


def followers_end(load: Load):
    """One after the other."""
    load.further()
    leader = load.cluster.leader(load.stream)
    for node in load.cluster.nodes:
        if node is not leader:
            end(node)
            load.further()
            comes_back(load, node)


def leader_ends_again_and_again(load: Load):
    """A server leads, is killed, and has to copy from its successor what it has missed, which is killed next."""
    for _ in range(3):
        leader_ends(signal.SIGKILL)(load)


def all_end(load: Load):
    load.further()
    for node in load.cluster.nodes:
        node.server.signal(signal.SIGKILL)
    for node in load.cluster.nodes:
        node.server.wait()
    for node in load.cluster.nodes:
        node.start()
    load.cluster.until_whole()
    load.further()


def all_restart_in_turn(load: Load):
    load.further()
    for node in load.cluster.nodes:
        end(node, signal.SIGTERM)
        load.further()
        comes_back(load, node)


TROUBLE = {
    "the leader is killed": leader_ends(signal.SIGKILL),
    "the leader is stopped": leader_ends(signal.SIGTERM),
    "the leader pauses": leader_pauses,
    "followers are killed in turn": followers_end,
    "each leader is killed": leader_ends_again_and_again,
    "all are killed": all_end,
    "all restart in turn": all_restart_in_turn,
}
