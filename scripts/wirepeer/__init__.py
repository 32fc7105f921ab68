# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An iWARP endpoint over an ordinary TCP socket, written from the RFCs alone.

It shares no code with the module it is turned against. Everything it sends can
be made wrong by request; everything it receives is checked, and what is not as
the RFCs have it raises a Violation.
"""


class Violation(AssertionError):
    """The other side broke a rule of the wire."""
