// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A kernel consumer: it accepts connections and sends each message back. It runs on every RDMA
 * device with connections, since all it calls is rdma_cm and ib_verbs.
 *
 *	make -C /lib/modules/$(uname -r)/build M=$PWD modules
 *	insmod rdma_echo.ko port=7779
 *	echo hello | ../echo 192.0.2.1
 *
 * A connection has a fixed set of buffers, and each of them is always in one of two places: posted
 * as a receive, or posted as the Send of its answer. So the queues cannot overflow, and a client
 * that sends more than there are buffers waits.
 *
 * Events of a connection come to on_event(), one at a time, where it may sleep. Completions come
 * to the done() of their work request, in softirq. When a connection ends, its teardown is left to
 * a work item, since an id cannot be destroyed in its own event handler.
 */
#include <linux/bitops.h>
#include <linux/dma-direction.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define BUFFERS		16
#define BUFFER_SIZE	4096
#define BACKLOG		16

static ushort port = 7779;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "port to listen on");

struct echo_buffer {
	struct echo_conn *conn;
	/* What the completion of a work request leads to: cqe->done() gets it back. */
	struct ib_cqe received, sent;
	void *data;
	u64 dma;
};

struct echo_conn {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct work_struct teardown;
	unsigned long ending;
	struct list_head entry;
	struct echo_buffer buffers[BUFFERS];
};

static struct rdma_cm_id *listener;
static struct workqueue_struct *teardown_wq;
/* Protects the list of all connections. */
static DEFINE_MUTEX(conns_lock);
static LIST_HEAD(conns);

/* --- messages ------------------------------------------------------------------- */

static struct ib_sge sge_of(const struct echo_buffer *buf, u32 length)
{
	return (struct ib_sge){
		.addr = buf->dma,
		.length = length,
		/* For memory that only this host accesses no registration is needed. */
		.lkey = buf->conn->pd->local_dma_lkey,
	};
}

static int post_receive(struct echo_buffer *buf)
{
	struct ib_sge sge = sge_of(buf, BUFFER_SIZE);
	const struct ib_recv_wr wr = {
		.wr_cqe = &buf->received,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(buf->conn->id->qp, &wr, NULL);
}

static int post_send(struct echo_buffer *buf, u32 length)
{
	struct ib_sge sge = sge_of(buf, length);
	const struct ib_send_wr wr = {
		.wr_cqe = &buf->sent,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_send(buf->conn->id->qp, &wr, NULL);
}

/*
 * A status other than success, and a post that fails, mean that the connection is about to end: the
 * event DISCONNECTED comes, and the buffers are freed with all others.
 */
static void on_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct echo_buffer *buf = container_of(wc->wr_cqe, struct echo_buffer, received);

	if (wc->status == IB_WC_SUCCESS)
		post_send(buf, wc->byte_len);
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct echo_buffer *buf = container_of(wc->wr_cqe, struct echo_buffer, sent);

	if (wc->status == IB_WC_SUCCESS)
		post_receive(buf);
}

/* --- a connection's objects -------------------------------------------------------- */

static int add_buffers(struct echo_conn *conn)
{
	struct ib_device *dev = conn->id->device;
	struct echo_buffer *buf;
	int ret = 0;

	for (buf = conn->buffers; !ret && buf < conn->buffers + BUFFERS; buf++) {
		void *data = kmalloc(BUFFER_SIZE, GFP_KERNEL);

		if (!data)
			return -ENOMEM;
		buf->dma = ib_dma_map_single(dev, data, BUFFER_SIZE, DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(dev, buf->dma)) {
			kfree(data);
			return -ENOMEM;
		}
		buf->conn = conn;
		buf->data = data;
		buf->received.done = on_received;
		buf->sent.done = on_sent;
		ret = post_receive(buf);
	}
	return ret;
}

/* In the reverse order; each step may be missing. */
static void free_objects(struct echo_conn *conn)
{
	struct echo_buffer *buf;

	if (conn->id->qp) {
		/* When it returns, no completion is left, and no done() is running. */
		ib_drain_qp(conn->id->qp);
		rdma_destroy_qp(conn->id);
	}
	for (buf = conn->buffers; buf < conn->buffers + BUFFERS && buf->data; buf++) {
		ib_dma_unmap_single(conn->id->device, buf->dma, BUFFER_SIZE, DMA_BIDIRECTIONAL);
		kfree(buf->data);
	}
	if (!IS_ERR_OR_NULL(conn->cq))
		ib_free_cq(conn->cq);
	if (!IS_ERR_OR_NULL(conn->pd))
		ib_dealloc_pd(conn->pd);
}

static int make_objects(struct echo_conn *conn)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One more each, for ib_drain_qp(). */
		.cap = { .max_send_wr = BUFFERS + 1,
			 .max_recv_wr = BUFFERS + 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	int ret;

	conn->pd = ib_alloc_pd(conn->id->device, 0);
	if (IS_ERR(conn->pd))
		return PTR_ERR(conn->pd);
	conn->cq = ib_alloc_cq_any(conn->id->device, conn, 2 * (BUFFERS + 1), IB_POLL_SOFTIRQ);
	if (IS_ERR(conn->cq))
		return PTR_ERR(conn->cq);
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	ret = rdma_create_qp(conn->id, conn->pd, &attr);
	/* Before the accept: the client may send as soon as it has the answer. */
	return ret ?: add_buffers(conn);
}

/* --- connections ------------------------------------------------------------------ */

static void teardown(struct work_struct *work)
{
	struct echo_conn *conn = container_of(work, struct echo_conn, teardown);

	mutex_lock(&conns_lock);
	list_del(&conn->entry);
	mutex_unlock(&conns_lock);
	rdma_disconnect(conn->id);
	free_objects(conn);
	/* Waits for a handler of this id that is running. */
	rdma_destroy_id(conn->id);
	kfree(conn);
}

/*
 * Once, however many events come: the disconnect in teardown() leads to one more, and a work item
 * that runs can be queued again.
 */
static void end_conn(struct echo_conn *conn)
{
	if (!test_and_set_bit(0, &conn->ending))
		queue_work(teardown_wq, &conn->teardown);
}

/* A request that cannot be accepted is rejected, and its id destroyed, by rdma_cm. */
static int accept_request(struct rdma_cm_id *id)
{
	struct echo_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	struct rdma_conn_param param = {};
	int ret;

	if (!conn)
		return -ENOMEM;
	conn->id = id;
	INIT_WORK(&conn->teardown, teardown);
	ret = make_objects(conn) ?: rdma_accept(id, &param);
	if (ret) {
		free_objects(conn);
		kfree(conn);
		return ret;
	}
	id->context = conn;
	mutex_lock(&conns_lock);
	list_add(&conn->entry, &conns);
	mutex_unlock(&conns_lock);
	return 0;
}

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct echo_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_request(id);
	case RDMA_CM_EVENT_ESTABLISHED:
		return 0;
	default:
		/* Disconnected, failed, or the device goes. */
		if (conn)
			end_conn(conn);
		return 0;
	}
}

static int __init echo_init(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int ret;

	teardown_wq = alloc_workqueue("echo_teardown", WQ_UNBOUND, 0);
	if (!teardown_wq)
		return -ENOMEM;
	listener = rdma_create_id(&init_net, on_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		ret = PTR_ERR(listener);
		goto destroy_wq;
	}
	/* Any address, so of any device, also of one that comes later. */
	ret = rdma_bind_addr(listener, (struct sockaddr *)&any) ?: rdma_listen(listener, BACKLOG);
	if (!ret)
		return 0;
	rdma_destroy_id(listener);
destroy_wq:
	destroy_workqueue(teardown_wq);
	return ret;
}

static void __exit echo_exit(void)
{
	struct echo_conn *conn;

	/* From here on there are no new connections. */
	rdma_destroy_id(listener);
	mutex_lock(&conns_lock);
	list_for_each_entry(conn, &conns, entry)
		end_conn(conn);
	mutex_unlock(&conns_lock);
	destroy_workqueue(teardown_wq);
}

module_init(echo_init);
module_exit(echo_exit);
MODULE_DESCRIPTION("Example of a kernel consumer: messages come back");
MODULE_LICENSE("Dual BSD/GPL");
