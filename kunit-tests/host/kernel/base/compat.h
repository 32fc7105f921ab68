/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* There is one kernel, and it is ours. */
