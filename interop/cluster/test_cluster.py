"""The messages of `leaf/` between two nodes of a cluster; imports between accounts; reloads; refusals, restarts, and peers
that misbehave."""

import pytest

from leaf.shapes import built
from leaf.stage import Stage
from leaf.traffic import in_both_directions

from . import changes, imports, shapes, traffic, trouble


@pytest.fixture(scope="module", params=shapes.SHAPES)
def shape(request):
    with built(shapes.SHAPES[request.param]) as shape:
        yield shape


@pytest.mark.parametrize("name", traffic.CASES)
def test_traffic(shape, name):
    in_both_directions(shape, traffic.CASES[name])


@pytest.mark.parametrize("name", imports.CASES)
def test_imports(name):
    with Stage() as stage:
        imports.CASES[name](stage)


@pytest.mark.parametrize("name", changes.CASES)
def test_changes(name):
    with Stage() as stage:
        changes.CASES[name](stage)


@pytest.mark.parametrize("name", trouble.CASES)
def test_trouble(name):
    with Stage() as stage:
        trouble.CASES[name](stage)
