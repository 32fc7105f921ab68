/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef IDLE_CONNS_H
#define IDLE_CONNS_H

#include "../check.h"

/* Opens that many connections from this process to itself; they stay open and idle. */
typedef void opener(const char *address, int port, int count);

opener tcp_open, rdma_open;

#endif
