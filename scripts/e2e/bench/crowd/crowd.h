/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef CROWD_H
#define CROWD_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(what, good)                                                                     \
	do {                                                                                  \
		if (!(good)) {                                                                \
			perror(what);                                                         \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

/* Opens that many connections from this process to itself; they stay open and idle. */
typedef void opener(const char *address, int port, int count);

opener tcp_open, rdma_open;

#endif
