# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""scripts/bench --wire: two guests on a cable. The requester measures; the responder does
what it is told."""
