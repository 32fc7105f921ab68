# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The fixtures of a test: "w" is the world with nothing in it that another test made."""

import pytest
import world as worlds


# What comes before a test matters to those of resources: a request that no test has asked for
# stays with the listener. New files come last.
ORDER = ("counters", "resource", "attributes", "tcp", "trace", "memory", "figures")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (*ORDER, item.path.stem[5:]).index(item.path.stem[5:]))


@pytest.fixture(scope="session")
def world(request):
    made = worlds.World(request.config.option)
    yield made
    made.agent.close()


@pytest.fixture
def w(world, aftermath):
    yield world
    aftermath(world, world.restore)
