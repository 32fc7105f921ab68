/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The functions that messages run through. They stand next to each other, in a fifth
 * of the pages they would be spread over otherwise.
 */
#ifndef WEFT_PROTO_HOT_H
#define WEFT_PROTO_HOT_H

#define weft_hot __attribute__((__hot__))

#endif
