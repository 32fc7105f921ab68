/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The cases that end the connection.
 */
#ifndef WEFT_TEST_ENDS_H
#define WEFT_TEST_ENDS_H

int case_bad_key_and_drain(void);
int case_drain_reads(void);
int case_goes_with_event_held(void);

#endif
