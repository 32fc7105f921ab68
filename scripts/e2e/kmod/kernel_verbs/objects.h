/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Cases of objects beside those of the world.
 */
#ifndef WEFT_TEST_OBJECTS_H
#define WEFT_TEST_OBJECTS_H

int case_full_queues(void);
int case_refused_objects(void);
int case_refused_request(void);
int case_reset(void);
int case_srq(void);

#endif
