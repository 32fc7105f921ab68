#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Find the features of the target kernel: compile short probes with its own build
# system and write the results as HAVE_* for drivers/weft/base/compat.h.
#
# Usage: scripts/conftest.sh KERNELDIR HEADER
#
# HEADER is touched only when a result changed. Results are kept beside it, one
# file per kernel tree, and probed again when the tree, the compiler or this script
# changed. ARCH, CC, LLVM and CROSS_COMPILE count as they do for make.

set -euo pipefail

[ $# -eq 2 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kernel=$(cd "$1" && pwd -P)
header=$2
work=$(mktemp -d)
memo=
trap 'rm -rf "$work" ${memo:+"$memo.$$"}' EXIT

declare -A about
names=()

# probe NAME 'what changed when, when it can go' <<CODE: does CODE compile?
probe() {
	names+=("$1")
	about[$1]=$2
	{
		echo '#include <linux/module.h>'
		cat
	} >"$work/probe_${1,,}.c"
}

# The control: if this one fails, no answer can be trusted.
probe SANITY 'always true' <<'C'
#include <rdma/ib_verbs.h>
int probe(struct ib_device *dev);
int probe(struct ib_device *dev) { return dev->phys_port_cnt; }
C

probe CREATE_CQ_ATTRS '6.11: create_cq takes the attribute bundle, not udata' <<'C'
#include <rdma/ib_verbs.h>
int f(struct ib_cq *, const struct ib_cq_init_attr *, struct uverbs_attr_bundle *);
const struct ib_device_ops ops = { .create_cq = f };
C

probe CREATE_USER_CQ '7.1: CQs of user space have an operation of their own' <<'C'
#include <rdma/ib_verbs.h>
int f(struct ib_cq *, const struct ib_cq_init_attr *, struct uverbs_attr_bundle *);
const struct ib_device_ops ops = { .create_user_cq = f };
C

probe RESIZE_USER_CQ '7.1: resize_cq renamed, size unsigned' <<'C'
#include <rdma/ib_verbs.h>
int f(struct ib_cq *, unsigned int, struct ib_udata *);
const struct ib_device_ops ops = { .resize_user_cq = f };
C

probe REG_USER_MR_DMAH '6.17: reg_user_mr takes DMA hints' <<'C'
#include <rdma/ib_verbs.h>
struct ib_mr *f(struct ib_pd *, u64, u64, u64, int, struct ib_dmah *, struct ib_udata *);
const struct ib_device_ops ops = { .reg_user_mr = f };
C

probe ODP_MAP '6.16: on-demand memory has a map with the list of pages' <<'C'
#include <rdma/ib_umem_odp.h>
unsigned long *f(struct ib_umem_odp *);
unsigned long *f(struct ib_umem_odp *umem) { return umem->map.pfn_list; }
C

probe CORE_PORT_EVENTS '6.14: the core watches netdevs and raises port events' <<'C'
#include <rdma/ib_verbs.h>
void f(struct ib_device *, struct net_device *, unsigned long);
const struct ib_device_ops ops = { .report_port_event = f };
C

probe COUNTER_BIND_PORT '6.16: binding a QP to a counter names the port' <<'C'
#include <rdma/ib_verbs.h>
int f(struct rdma_counter *, struct ib_qp *, u32);
const struct ib_device_ops ops = { .counter_bind_qp = f };
C

probe COUNTER_INIT '6.16: counters are objects of the driver' <<'C'
#include <rdma/ib_verbs.h>
void f(struct rdma_counter *);
const struct ib_device_ops ops = { .counter_init = f };
C

probe FILL_RES_SRQ '6.2: details of an SRQ for resource tracking' <<'C'
#include <rdma/ib_verbs.h>
int f(struct sk_buff *, struct ib_srq *);
const struct ib_device_ops ops = { .fill_res_srq_entry = f };
C

probe NAME_ASSIGN_TYPE '6.3: a name given by the user is marked, udev keeps it' <<'C'
#include <rdma/ib_verbs.h>
void f(struct ib_device *);
void f(struct ib_device *dev) { ib_mark_name_assigned_by_user(dev); }
C

probe UNALIGNED_H '6.12: asm/unaligned.h moved to linux/' <<'C'
#include <linux/unaligned.h>
C

probe TCP_SENDPAGE '6.5: tcp_sendpage_locked went; 6.1 has it beside MSG_SPLICE_PAGES' <<'C'
#include <net/tcp.h>
int f(struct sock *);
int f(struct sock *sk) { return tcp_sendpage_locked(sk, NULL, 0, 0, 0); }
C

probe SK_USE_TASK_FRAG '6.2 and late stable 6.1: whose page fragment is used is said, not inferred' <<'C'
#include <net/sock.h>
void f(struct sock *);
void f(struct sock *sk) { sk->sk_use_task_frag = false; }
C

probe SEND_ACK_FLAGS '6.14: __tcp_send_ack takes TCP flags' <<'C'
#include <net/tcp.h>
void f(struct sock *sk);
void f(struct sock *sk) { __tcp_send_ack(sk, 0, 0); }
C

probe SOCKADDR_UNSIZED '6.19: kernel_bind and friends take struct sockaddr_unsized' <<'C'
#include <linux/net.h>
int f(struct socket *, struct sockaddr_unsized *);
int f(struct socket *s, struct sockaddr_unsized *a) { return kernel_bind(s, a, 0); }
C

probe TIMER_DELETE '6.2: del_timer is timer_delete; the old name went in 6.15' <<'C'
#include <linux/timer.h>
int f(struct timer_list *);
int f(struct timer_list *t) { return timer_delete(t) + timer_delete_sync(t); }
C

probe TIMER_CONTAINER_OF '6.16: from_timer is timer_container_of' <<'C'
#include <linux/timer.h>
struct probe { struct timer_list timer; };
struct probe *f(struct timer_list *);
struct probe *f(struct timer_list *t)
{
	struct probe *p = timer_container_of(p, t, timer);

	return p;
}
C

probe VM_FLAGS_SET '6.3: flags of a mapping are changed by functions only' <<'C'
#include <linux/mm.h>
void f(struct vm_area_struct *);
void f(struct vm_area_struct *vma) { vm_flags_set(vma, VM_DONTEXPAND); }
C

probe KUNIT_VISIBILITY '6.3: VISIBLE_IF_KUNIT and EXPORT_SYMBOL_IF_KUNIT' <<'C'
#include <kunit/visibility.h>
C

probe SK_NET_REFCNT_UPGRADE '6.15 and some stables: a kernel socket can hold its netns' <<'C'
#include <net/sock.h>
void f(struct sock *);
void f(struct sock *sk) { sk_net_refcnt_upgrade(sk); }
C

probe NETNS_TRACKER_FREE '6.3: kernel sockets carry a netns tracker; wanted up to 6.14' <<'C'
#include <net/sock.h>
void f(struct net *, struct sock *);
void f(struct net *n, struct sock *sk) { __netns_tracker_free(n, &sk->ns_tracker, false); }
C

probe HRTIMER_SETUP '6.13: hrtimer_init and its function in one; the old one went in 6.15' <<'C'
#include <linux/hrtimer.h>
void f(struct hrtimer *, enum hrtimer_restart (*)(struct hrtimer *));
void f(struct hrtimer *t, enum hrtimer_restart (*fn)(struct hrtimer *))
{
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}
C

probe IMPORT_NS_TOKEN '6.13: the name of a symbol namespace is a string' <<'C'
MODULE_IMPORT_NS(DMA_BUF);
C

probe DMA_BUF_VMAP_UNLOCKED '6.2: dma_buf_vmap wants the reservation lock held' <<'C'
#include <linux/dma-buf.h>
int f(struct dma_buf *, struct iosys_map *);
int f(struct dma_buf *buf, struct iosys_map *map) { return dma_buf_vmap_unlocked(buf, map); }
C

probe REG_DMABUF_ATTRS '6.10: reg_user_mr_dmabuf takes the attribute bundle' <<'C'
#include <rdma/ib_verbs.h>
struct ib_mr *f(struct ib_pd *, u64, u64, u64, int, int, struct uverbs_attr_bundle *);
struct ib_mr *g(struct ib_pd *, u64, u64, u64, int, int, struct ib_dmah *,
		struct uverbs_attr_bundle *);
const struct ib_device_ops ops = {
	.reg_user_mr_dmabuf = _Generic(((struct ib_device_ops *)0)->reg_user_mr_dmabuf,
				       typeof(&f): f, typeof(&g): g),
};
C

probe UMEM_GET_VA '7.1: ib_umem_get renamed ib_umem_get_va' <<'C'
#include <rdma/ib_umem.h>
struct ib_umem *f(struct ib_device *);
struct ib_umem *f(struct ib_device *dev) { return ib_umem_get_va(dev, 0, 0, 0); }
C

write_kbuild() {
	local name
	for name in "${names[@]}"; do
		echo "obj-m += probe_${name,,}.o"
	done
	echo 'ccflags-y += -Werror=incompatible-pointer-types'
	echo 'ccflags-y += -Werror=implicit-function-declaration -Wno-missing-prototypes'
}

compile() {
	local objects=("${names[@],,}")
	objects=("${objects[@]/#/probe_}")
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u O -u M -u W -u C -u V \
		make -k -j"$(nproc)" -C "$kernel" M="$work" \
		${ARCH:+ARCH="$ARCH"} ${CC:+CC="$CC"} ${LLVM:+LLVM="$LLVM"} \
		${CROSS_COMPILE:+CROSS_COMPILE="$CROSS_COMPILE"} \
		"${objects[@]/%/.o}" >"$work/log" 2>&1 || true
}

answers() {
	local name
	echo '/* Written by scripts/conftest.sh; do not edit. */'
	for name in "${names[@]:1}"; do
		printf '\n/* %s */\n' "${about[$name]}"
		if [ -e "$work/probe_${name,,}.o" ]; then
			echo "#define HAVE_$name 1"
		else
			echo "/* #undef HAVE_$name */"
		fi
	done
}

fail() {
	echo "conftest: $1; the end of the log:" >&2
	grep -v 'not remade because of errors' "$work/log" | tail -n 20 >&2
	exit 1
}

# No is an answer only if the compiler said what it does not like: one that was killed, or
# found the disk full, has said nothing of the kernel.
check_answers() {
	local name
	[ -e "$work/probe_sanity.o" ] || fail "$kernel cannot build modules"
	! grep -qE 'signal terminated|Killed|Terminated|Error (12[89]|1[3-9][0-9]|2[0-9][0-9])$' \
		"$work/log" || fail "the compiler was killed"
	for name in "${names[@],,}"; do
		[ -e "$work/probe_$name.o" ] || grep -q "probe_$name\.c:" "$work/log" ||
			fail "the compiler gave no answer to probe_$name.c"
	done
}

ask() {
	write_kbuild >"$work/Kbuild"
	compile
	check_answers
	answers
}

# Everything an answer depends on, in a short key.
key() {
	{
		echo "$kernel" "${ARCH:-}" "${CC:-}" "${LLVM:-}" "${CROSS_COMPILE:-}"
		cat "$kernel/include/generated/utsrelease.h" "$0"
		cksum "$kernel/include/generated/autoconf.h" "$kernel/Module.symvers" 2>&1
		"${CC:-gcc}" --version 2>&1 || true
	} | sha256sum | cut -c1-16
}

[ -e "$kernel/include/generated/autoconf.h" ] || {
	echo "conftest: $kernel is not a configured kernel tree" >&2
	exit 1
}
memo=$(dirname "$header")/have-$(key).h
mkdir -p "$(dirname "$header")"
if [ ! -e "$memo" ]; then
	echo "  CONFTEST $kernel"
	ask >"$memo.$$"
	mv "$memo.$$" "$memo"
fi
cmp -s "$memo" "$header" || cp "$memo" "$header"
