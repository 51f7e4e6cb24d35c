"""The messages of `leaf/` between two clusters; discovery, replies, accounts, refusals, restarts, and peers that
misbehave."""

import pytest

from leaf.shapes import built
from leaf.stage import Stage
from leaf.traffic import CASES, in_both_directions

from . import gateway_cases, gateways


@pytest.fixture(scope="module", params=gateways.SHAPES)
def shape(request):
    with built(gateways.SHAPES[request.param]) as shape:
        yield shape


@pytest.mark.parametrize("name", CASES)
def test_traffic(shape, name):
    in_both_directions(shape, CASES[name])


def test_traces(shape):
    in_both_directions(shape, gateway_cases.trace_crosses)


@pytest.mark.parametrize("name", gateway_cases.CASES)
def test_gateways(name):
    with Stage() as stage:
        gateway_cases.CASES[name](stage)
