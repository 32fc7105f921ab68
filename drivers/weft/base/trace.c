// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The tracepoints themselves.
 */
#define CREATE_TRACE_POINTS
#include "base/trace.h"
