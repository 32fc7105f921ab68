# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The fixtures of a test: "f" is what it makes, "world" what lasts."""

import harness
import pytest

# Runs for as long as one says, so it is named: pytest test_mutated.py
collect_ignore = ["test_mutated.py"]


@pytest.fixture(scope="session")
def world(request):
    option = request.config.option
    made = harness.World(option.dev, option.addr, option.own, option.addr6, option.agent, option.slow)
    yield made
    made.agent.close()


@pytest.fixture
def f(world, aftermath):
    fixture = harness.Fixture(world)
    yield fixture
    aftermath(world, fixture.guards, fixture.release, world.healthy)
