// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A kernel consumer that connects to itself and does what storage consumers do:
 * fast registration of the longest list, invalidations of every kind, posting
 * from completion callbacks, draining; in every polling context and on every
 * completion vector. Loading it runs the test: it stays loaded if all went well,
 * and says in the kernel log what did not.
 *
 *	insmod kernel_verbs.ko address=10.77.0.1
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/sock.h>

#include "cases.h"
#include "event.h"
#include "world.h"

#define PORT	7567
#define DEPTH	4

static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of the device");

struct world world;

/* Behind a disk, TCP may use the memory reserves from the first packet on: a request has come. */
static int make_qp(struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = world.cq,
		.recv_cq = world.cq,
	};

	CHECK(id != world.self.server || sk_memalloc_socks());
	return rdma_create_qp(id, world.pd, &attr);
}

/* One more than a limit, and none: for a consumer in the kernel, the core looks at neither. */
static int check_limits(struct ib_device *dev)
{
	u32 most = dev->attrs.max_fast_reg_page_list_len;
	struct ib_cq *cq;
	struct ib_mr *mr;

	cq = ib_alloc_cq(dev, NULL, 16, dev->num_comp_vectors, IB_POLL_DIRECT);
	CHECK(IS_ERR(cq) && PTR_ERR(cq) == -EINVAL);
	mr = ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, most);
	CHECK(!IS_ERR(mr) && !ib_dereg_mr(mr));
	mr = ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, most + 1);
	CHECK(IS_ERR(mr) && PTR_ERR(mr) == -EINVAL);
	mr = ib_alloc_mr(world.pd, IB_MR_TYPE_MEM_REG, 0);
	CHECK(IS_ERR(mr) && PTR_ERR(mr) == -EINVAL);
	return 0;
}

static int make_objects(struct ib_device *dev)
{
	int ret;

	CHECK(dev->attrs.max_fast_reg_page_list_len >= PAGES);
	CHECK(dev->attrs.masked_atomic_cap == IB_ATOMIC_GLOB);
	CHECK(dev->num_comp_vectors == num_online_cpus());
	world.pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(world.pd))
		return PTR_ERR(world.pd);
	ret = check_limits(dev);
	if (ret)
		return ret;
	world.cq = ib_alloc_cq(dev, NULL, 128, world.vector, world.context);
	if (IS_ERR(world.cq))
		return PTR_ERR(world.cq);
	event_watch(world.cq);
	return area_make(&world.a) ?: area_make(&world.b);
}

static const struct self_maker maker = {
	.objects = make_objects,
	.qp = make_qp,
	.depth = DEPTH,
};

static void clean_up(void)
{
	self_drop(&world.self);
	area_drop(&world.a);
	area_drop(&world.b);
	if (!IS_ERR_OR_NULL(world.cq))
		ib_free_cq(world.cq);
	if (!IS_ERR_OR_NULL(world.pd))
		ib_dealloc_pd(world.pd);
	kfree(world.small);
	memset(&world, 0, sizeof(world));
}

static int run(struct sockaddr *sa, enum ib_poll_context context, int vector, int round)
{
	int ret;

	world.context = context;
	world.vector = vector;
	world.small = kzalloc(PAGE_SIZE, GFP_KERNEL);
	ret = world.small ? self_connect(&world.self, &maker, sa) : -ENOMEM;
	if (ret)
		pr_err("no connection: %d\n", ret);
	else
		ret = cases_run(round);
	clean_up();
	return ret;
}

static const enum ib_poll_context contexts[] = {
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
	IB_POLL_DIRECT,
};

static int __init kernel_verbs_init(void)
{
	struct sockaddr_in sa;
	int ret = connect_address(&sa, address, PORT);
	int rounds = 0;
	size_t i;
	int v;

	for (i = 0; !ret && i < ARRAY_SIZE(contexts); i++) {
		for (v = 0; !ret && v < min_t(int, num_online_cpus(), 2); v++, rounds++)
			ret = run((struct sockaddr *)&sa, contexts[i], v, rounds);
	}
	if (!ret)
		pr_info("%zu cases as expected, in %d rounds\n", cases_count(), rounds);
	return ret;
}

static void __exit kernel_verbs_exit(void)
{
}

module_init(kernel_verbs_init);
module_exit(kernel_verbs_exit);

MODULE_DESCRIPTION("What a storage consumer asks of a device");
MODULE_LICENSE("Dual BSD/GPL");
