"""The servers of one case."""

import pytest

from leaf.stage import Stage


@pytest.fixture
def stage():
    with Stage() as stage:
        yield stage


@pytest.fixture
def hub(request, stage):
    return request.param(stage, "hub")


@pytest.fixture
def spoke(request, stage):
    return request.param(stage, "spoke")
