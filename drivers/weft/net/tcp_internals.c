// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A window update that TCP does not send by itself.
 */
#include "net/tcp_internals.h"

#include <linux/tcp.h>

#include "base/compat.h"

#define RECEIVING	(TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)

/**
 * weft_window_tell - tell the peer how much room there is
 * @sk: a socket that weft_window_shut() was said of
 *
 * As a softirq would: more than a moment with the lock, and there would be something to
 * receive behind it again. A process that has it by now sees to the window itself.
 * Context: process.
 */
void weft_window_tell(struct sock *sk)
{
	local_bh_disable();
	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk) && BIT(sk->sk_state) & RECEIVING && weft_window_shut(sk))
		compat_send_ack(sk, tcp_sk(sk)->rcv_nxt);
	bh_unlock_sock(sk);
	local_bh_enable();
}
