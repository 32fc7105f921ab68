// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which of two layouts a library has that calls both private ABI 59.
 */
#include "private-abi/private.h"

#if WEFT_PABI == 59

/* Came into the library with the second layout. Nothing but its presence is looked at. */
void ibv_query_port_speed(void);
#pragma weak ibv_query_port_speed

bool pabi_is_earlier_59(void)
{
	return !ibv_query_port_speed;
}

/**
 * pabi_shape - the table of operations in the library's layout
 * @ops: in the one that is declared
 *
 * Return: @ops, or a copy that is valid until the process ends.
 */
const struct verbs_context_ops *pabi_shape(const struct verbs_context_ops *ops)
{
	static const size_t lacking[] = {
		offsetof(struct verbs_context_ops, dm_export_dmabuf_fd) / sizeof(pabi_slot),
		offsetof(struct verbs_context_ops, query_port_speed) / sizeof(pabi_slot),
	};
	static union {
		struct verbs_context_ops ops;
		pabi_slot slots[WEFT_PABI_SLOTS];
	} earlier;
	const pabi_slot *from = (const pabi_slot *)ops;
	size_t i, n = 0;

	static_assert(WEFT_PABI_SLOTS - 2 == WEFT_PABI_EARLIER_59_SLOTS, "slots of the earlier 59");
	if (!pabi_is_earlier_59())
		return ops;
	for (i = 0; i < WEFT_PABI_SLOTS; i++) {
		if (i != lacking[0] && i != lacking[1])
			earlier.slots[n++] = from[i];
	}
	return &earlier.ops;
}

#endif
