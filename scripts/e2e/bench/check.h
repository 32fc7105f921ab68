/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the programs of the bench do when a call fails that has to succeed: they end.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(what, good)                                                                     \
	do {                                                                                  \
		if (!(good)) {                                                                \
			perror(what);                                                         \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

#endif
