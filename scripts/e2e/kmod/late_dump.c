// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Dumps that come late. The core of many kernels finds an object for netlink until its driver
 * has destroyed it, and a dump that has begun goes on meanwhile. This module stands between
 * the core and the destroy functions of one device: while one of them runs, and once more when it
 * has returned, it asks what a dump asks. Where the kernel has kprobes, some dumps of CQs are held
 * up in the middle. iw_cm is played as well: it looks a QP up by its number, and takes its
 * reference a little later, in the same critical section. And a QP is bound to a counter, as
 * netlink does for those that it finds.
 *
 *	insmod late_dump.ko device=weft0
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/version.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>

#define LOOKUPS 8 /* each takes tens of milliseconds */
#define HOLDS	8 /* likewise */

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of the device");

static uint answered;
module_param(answered, uint, 0444);
MODULE_PARM_DESC(answered, "objects that were shown before they were destroyed");

static uint late;
module_param(late, uint, 0444);
MODULE_PARM_DESC(late, "objects that were shown after they were destroyed");

static uint looked_up;
module_param(looked_up, uint, 0444);
MODULE_PARM_DESC(looked_up, "QPs that iw_cm found while they were destroyed");

static uint early;
module_param(early, uint, 0444);
MODULE_PARM_DESC(early, "of these, and of those held, destroyed before they were let go of");

static uint bound;
module_param(bound, uint, 0444);
MODULE_PARM_DESC(bound, "QPs that were bound to a counter before they were destroyed");

static uint late_bound;
module_param(late_bound, uint, 0444);
MODULE_PARM_DESC(late_bound, "QPs that were bound while, or after, they were destroyed");

static uint held;
module_param(held, uint, 0444);
MODULE_PARM_DESC(held, "CQs that were destroyed while a dump of theirs was held up");

static uint idle_qpn;
module_param(idle_qpn, uint, 0444);
MODULE_PARM_DESC(idle_qpn, "number of a QP that only this module connects");

static struct ib_device *dev;
static struct ib_pd *pd;
static struct ib_cq *cq;
static struct ib_qp *idle;
static struct ib_device_ops real;
static struct rdma_counter counter;

/* An object, and how it is asked. */
struct asked {
	int (*ask)(void *object, struct sk_buff *msg);
	void *object;
	struct task_struct *thread;
};

static int ask_qp(void *object, struct sk_buff *msg)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};

	return real.query_qp(object, &attr, 0, &init) ?: real.fill_res_qp_entry(msg, object);
}

static int ask_cq(void *object, struct sk_buff *msg)
{
	return real.fill_res_cq_entry(msg, object);
}

/* Older kernels show no SRQs: nothing is asked there, and nothing is found. */
static int ask_srq(void *object, struct sk_buff *msg)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	return real.fill_res_srq_entry(msg, object);
#else
	return -EAGAIN;
#endif
}

static int ask(const struct asked *a)
{
	struct sk_buff *msg = alloc_skb(NLMSG_GOODSIZE, GFP_KERNEL | __GFP_NOFAIL);
	int ret = a->ask(a->object, msg);

	kfree_skb(msg);
	return ret;
}

static int ask_all_the_time(void *arg)
{
	while (!kthread_should_stop()) {
		ask(arg);
		cond_resched();
	}
	return 0;
}

static void begin(struct asked *a)
{
	answered += !ask(a);
	a->thread = kthread_run(ask_all_the_time, a, "late_dump");
}

static void end(const struct asked *a)
{
	late += ask(a) != -EAGAIN;
	if (!IS_ERR(a->thread))
		kthread_stop(a->thread);
}

/* --- counters ------------------------------------------------------------------- */

static int bind_to_counter(struct ib_qp *qp)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	return real.counter_bind_qp(&counter, qp, counter.port);
#else
	return real.counter_bind_qp(&counter, qp);
#endif
}

static void unbind(struct ib_qp *qp)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	real.counter_unbind_qp(qp, counter.port);
#else
	real.counter_unbind_qp(qp);
#endif
}

static bool can_be_bound(struct ib_qp *qp)
{
	int ret = bind_to_counter(qp);

	unbind(qp);
	return !ret;
}

/* --- iw_cm ------------------------------------------------------------------- */

struct lookup {
	u32 qpn;
	bool destroyed;
	struct completion found;
	struct task_struct *thread;
};

static int look_up(void *arg)
{
	struct lookup *l = arg;
	struct ib_qp *qp;

	rcu_read_lock();
	qp = real.iw_get_qp(dev, l->qpn);
	complete(&l->found);
	mdelay(20);
	early += READ_ONCE(l->destroyed);
	if (qp)
		real.iw_add_ref(qp);
	rcu_read_unlock();
	msleep(20);
	early += READ_ONCE(l->destroyed);
	if (qp) /* its destruction waits for the reference now */
		late_bound += can_be_bound(qp);
	looked_up += !!qp;
	if (qp)
		real.iw_rem_ref(qp);
	while (!kthread_should_stop())
		msleep(1);
	return 0;
}

static void begin_lookup(struct lookup *l)
{
	l->destroyed = false;
	init_completion(&l->found);
	l->thread = looked_up < LOOKUPS ? kthread_run(look_up, l, "late_lookup") : NULL;
	if (!IS_ERR_OR_NULL(l->thread))
		wait_for_completion(&l->found);
}

static void end_lookup(struct lookup *l)
{
	WRITE_ONCE(l->destroyed, true);
	if (!IS_ERR_OR_NULL(l->thread))
		kthread_stop(l->thread);
}

/* --- a dump in the middle --------------------------------------------------------- */

/* The CQ that is destroyed next: its dump has got hold of it; it is destroyed. */
static struct {
	bool wanted;
	bool inside;
	bool destroyed;
} hold;

#ifdef CONFIG_KPROBES
/* The dump has its reference, and reads what goes with the CQ. Context: preemption is disabled. */
static int stand_still(struct kprobe *p, struct pt_regs *regs)
{
	if (!READ_ONCE(hold.wanted) || !(current->flags & PF_KTHREAD))
		return 0;
	WRITE_ONCE(hold.inside, true);
	mdelay(20);
	early += READ_ONCE(hold.destroyed);
	return 0;
}

static struct kprobe probe = { .symbol_name = "weft_cq_inspect", .pre_handler = stand_still };

static int begin_holding(void)
{
	return register_kprobe(&probe);
}

static void end_holding(void)
{
	unregister_kprobe(&probe);
}
#else
static int begin_holding(void)
{
	held = HOLDS; /* none can be */
	return 0;
}

static void end_holding(void)
{
}
#endif

/* The dumps of @a go on until it is destroyed. */
static int destroy_held(struct ib_cq *cq, struct ib_udata *udata)
{
	unsigned long end = jiffies + HZ;
	int ret;

	WRITE_ONCE(hold.destroyed, false);
	WRITE_ONCE(hold.inside, false);
	WRITE_ONCE(hold.wanted, held < HOLDS);
	while (hold.wanted && !READ_ONCE(hold.inside) && time_before(jiffies, end))
		cond_resched();
	held += READ_ONCE(hold.inside);
	ret = real.destroy_cq(cq, udata);
	WRITE_ONCE(hold.destroyed, true);
	WRITE_ONCE(hold.wanted, false);
	return ret;
}

/* --- what the core calls ------------------------------------------------------- */

static int destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct asked a = { .ask = ask_qp, .object = qp };
	struct lookup l = { .qpn = qp->qp_num };
	int ret;

	bound += can_be_bound(qp);
	begin(&a);
	begin_lookup(&l);
	ret = real.destroy_qp(qp, udata);
	late_bound += can_be_bound(qp);
	end_lookup(&l);
	end(&a);
	return ret;
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct asked a = { .ask = ask_cq, .object = cq };
	int ret;

	begin(&a);
	ret = destroy_held(cq, udata);
	end(&a);
	return ret;
}

static int destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	struct asked a = { .ask = ask_srq, .object = srq };
	int ret;

	begin(&a);
	ret = real.destroy_srq(srq, udata);
	end(&a);
	return ret;
}

static int add(struct ib_device *ib)
{
	if (strcmp(dev_name(&ib->dev), device))
		return -EOPNOTSUPP;
	dev = ib;
	real = ib->ops;
	counter.device = ib;
	counter.port = 1;
	ib->ops.destroy_qp = destroy_qp;
	ib->ops.destroy_cq = destroy_cq;
	ib->ops.destroy_srq = destroy_srq;
	return 0;
}

static void drop_idle(void)
{
	if (!IS_ERR_OR_NULL(idle))
		ib_destroy_qp(idle);
	if (!IS_ERR_OR_NULL(cq))
		ib_free_cq(cq);
	if (!IS_ERR_OR_NULL(pd))
		ib_dealloc_pd(pd);
}

static void remove(struct ib_device *ib, void *data)
{
	drop_idle();
	end_holding();
	real.counter_dealloc(&counter);
	ib->ops.destroy_qp = real.destroy_qp;
	ib->ops.destroy_cq = real.destroy_cq;
	ib->ops.destroy_srq = real.destroy_srq;
}

static int make_idle(void)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
	};

	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	cq = ib_alloc_cq(dev, NULL, 4, 0, IB_POLL_DIRECT);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	idle = ib_create_qp(pd, &attr);
	if (IS_ERR(idle))
		return PTR_ERR(idle);
	idle_qpn = idle->qp_num;
	return 0;
}

static struct ib_client client = { .name = "late_dump", .add = add, .remove = remove };

static int __init late_dump_init(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	ret = dev ? make_idle() ?: begin_holding() : -ENODEV;
	if (!ret)
		return 0;
	ib_unregister_client(&client);
	return ret;
}

static void __exit late_dump_exit(void)
{
	ib_unregister_client(&client);
}

module_init(late_dump_init);
module_exit(late_dump_exit);
MODULE_DESCRIPTION("Dumps of objects that are being destroyed");
MODULE_LICENSE("Dual BSD/GPL");
