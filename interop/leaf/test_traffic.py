"""Messages over leaf connections, with the server under test in every position."""

import pytest

from . import traffic
from .shapes import SHAPES, built


@pytest.fixture(scope="module", params=SHAPES)
def shape(request):
    with built(SHAPES[request.param]) as shape:
        yield shape


@pytest.mark.parametrize("name", traffic.CASES)
def test_traffic(shape, name):
    traffic.in_both_directions(shape, traffic.CASES[name])
