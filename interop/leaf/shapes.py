"""Positions of the server under test, and the two ends between which messages are sent."""

import contextlib
from dataclasses import dataclass

from harness.client import settle

from .stage import Node, Stage, remote


@dataclass
class Shape:
    """The servers at both ends, which are connected by at least one leaf connection."""

    near: Node
    far: Node


def is_spoke(stage: Stage, more: str = "") -> Shape:
    return one_link(stage.reference("hub"), stage.tested("spoke"), more)


def is_hub(stage: Stage, more: str = "") -> Shape:
    return one_link(stage.tested("hub"), stage.reference("spoke"), more)


def is_both(stage: Stage, more: str = "") -> Shape:
    return one_link(stage.tested("hub"), stage.tested("spoke"), more)


def one_link(hub: Node, spoke: Node, more: str) -> Shape:
    hub.start(hub.leafnodes(listen=True, more=more))
    spoke.start(spoke.leafnodes(remote(hub.leaf_port, more=more)))
    return Shape(spoke, hub)


def is_between(stage: Stage, more: str = "") -> Shape:
    """A leaf node of a leaf node: the server in the middle must announce the interest of each side to the other."""
    top, middle, bottom = stage.reference("top"), stage.tested("middle"), stage.reference("bottom")
    top.write(top.leafnodes(listen=True, more=more))
    middle.write(middle.leafnodes(remote(top.leaf_port, more=more), listen=True, more=more))
    bottom.write(bottom.leafnodes(remote(middle.leaf_port, more=more)))
    for node in (top, middle, bottom):
        node.start()
    return Shape(bottom, top)


def is_hub_of_two(stage: Stage, more: str = "") -> Shape:
    hub, left, right = stage.tested("hub"), stage.reference("left"), stage.tested("right")
    hub.write(hub.leafnodes(listen=True, more=more))
    for spoke in (left, right):
        spoke.write(spoke.leafnodes(remote(hub.leaf_port, more=more)))
    for node in (hub, left, right):
        node.start()
    return Shape(left, right)


def is_spoke_of_cluster(stage: Stage, more: str = "") -> Shape:
    """A leaf node of one node of three; the other end is another node."""
    nodes = stage.cluster()
    spoke = stage.tested("spoke")
    spoke.start(spoke.leafnodes(remote(nodes[0].leaf_port, more=more)))
    return Shape(spoke, nodes[2])


SHAPES = {
    "spoke": is_spoke,
    "hub": is_hub,
    "hub and spoke": is_both,
    "between two": is_between,
    "hub of two": is_hub_of_two,
    "spoke of a cluster": is_spoke_of_cluster,
}


def ready(shape: Shape):
    """Returns when messages arrive from each end at the other."""
    with shape.near.client() as near, shape.far.client() as far:
        settle(near, far)
        settle(far, near)


@contextlib.contextmanager
def built(make):
    with Stage() as stage:
        shape = make(stage)
        ready(shape)
        yield shape
