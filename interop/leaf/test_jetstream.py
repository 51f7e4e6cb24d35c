"""JetStream across domains, with the server under test in every position."""

import pytest

from . import jetstream
from .shapes import built


@pytest.fixture(scope="module", params=jetstream.SHAPES)
def shape(request):
    with built(jetstream.SHAPES[request.param]) as shape:
        yield shape


@pytest.mark.parametrize("name", jetstream.CASES)
def test_jetstream(shape, name):
    jetstream.in_both_directions(shape, jetstream.CASES[name])
