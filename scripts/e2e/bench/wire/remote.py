# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The responder's Host as an object of the requester's: over a TCP connection through the
same cable, silent while something is measured."""

import threading
import time
from multiprocessing.managers import BaseManager

from programs import Failure
from wire.host import CONTROL, Host, address

PORT, KEY = 7000, b"cable"
WAIT = 60	# seconds for the other guest to boot
METHODS = [name for name in dir(Host) if not name.startswith("_")]


class _Hosts(BaseManager):
    pass


def serve(siw_dir):
    """Until the requester says that it is over."""
    host = Host("responder", siw_dir)
    _Hosts.register("host", callable=lambda: host, exposed=METHODS)
    server = _Hosts((address("responder", CONTROL), PORT), KEY).get_server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host.over.wait()
    host.end()
    time.sleep(0.2)


class Responder:
    """The connection, and the object at its end."""

    def __init__(self):
        _Hosts.register("host", exposed=METHODS)
        self.manager = _Hosts((address("responder", CONTROL), PORT), KEY)
        end = time.monotonic() + WAIT
        while True:
            try:
                self.manager.connect()
                break
            except OSError as why:
                if time.monotonic() > end:
                    raise Failure("the responder does not answer: %s" % why) from None
                time.sleep(0.2)
        # pylint: disable=no-member
        self.host = self.manager.host()
