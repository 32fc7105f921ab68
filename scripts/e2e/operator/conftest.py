# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The fixtures of a test: "w" is the world with nothing in it that another test made."""

import pytest
import world as worlds


@pytest.fixture(scope="session")
def world(request):
    made = worlds.World(request.config.option)
    yield made
    made.agent.close()


@pytest.fixture
def w(world, aftermath):
    yield world
    aftermath(world, world.restore)
