// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What iw_cm calls, found by device and passed on to cm/.
 */
#include "verbs/iw.h"

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>

#include "cm/iwcm.h"
#include "verbs/device.h"
#include "verbs/qp.h"

/*
 * A QP of a kernel consumer belongs to an id of rdma_cm. That of a process has none, but may
 * come with any number. rdma_cm may have chosen another device for a connection than that of
 * the listener, by an address that has moved: then the number is of a QP there.
 */
static bool is_of_another(const struct iw_cm_id *id, u32 qpn)
{
	const struct rdma_cm_id *consumer = id->context;
	struct weft_stream *st;
	bool kernel;

	if (consumer->device != id->device)
		return true;
	st = weft_stream_find(&to_weft_dev(id->device)->streams, qpn);
	kernel = st && weft_stream_serves_kernel(st);
	if (st)
		weft_stream_put(st);
	return kernel && !(consumer->qp && consumer->qp->qp_num == qpn);
}

int weft_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (is_of_another(id, param->qpn))
		return -EPERM;
	return weft_cm_connect(&to_weft_dev(id->device)->cm, id, param);
}

int weft_iw_reject(struct iw_cm_id *id, const void *pdata, u8 pdata_len)
{
	struct weft_cm *cm = &to_weft_dev(id->device)->cm;
	u32 withdrawn = 0;
	int ret;

	ret = weft_cm_reject(cm, id, pdata, pdata_len, &withdrawn);
	if (withdrawn)
		weft_iw_disown(id->device, withdrawn);
	return ret;
}

int weft_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (is_of_another(id, param->qpn)) {
		weft_iw_reject(id, NULL, 0);
		return -EPERM;
	}
	return weft_cm_accept(&to_weft_dev(id->device)->cm, id, param);
}

static bool has_siw(struct net_device *netdev)
{
	struct ib_device *siw = ib_device_get_by_netdev(netdev, RDMA_DRIVER_SIW);

	if (siw)
		ib_device_put(siw);
	return siw;
}

/*
 * siw has a socket for each of its devices, which cannot be opened if another one has the port
 * on all of them, or on the same network device; and rdma_cm gives up if one device cannot
 * listen. rdma_cm has all devices listen in the namespace of the consumer, wherever their
 * network devices are.
 */
static enum weft_wildcard_scope wildcard_scope(struct weft_device *dev)
{
	struct net_device *netdev;
	bool found = false;
	struct net *net;

	if (has_siw(dev->netdev))
		return WEFT_WILDCARD_NONE;
	rcu_read_lock();
	for_each_net_rcu(net) {
		for_each_netdev_rcu(net, netdev)
			found |= has_siw(netdev);
	}
	rcu_read_unlock();
	return found ? WEFT_WILDCARD_DEVICE : WEFT_WILDCARD_SHARED;
}

int weft_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	struct weft_device *dev = to_weft_dev(id->device);
	const struct rdma_cm_id *consumer = id->context;

	return weft_cm_listen(&dev->cm, id, backlog, consumer->route.addr.dev_addr.net,
			      wildcard_scope(dev));
}

int weft_iw_destroy_listen(struct iw_cm_id *id)
{
	return weft_cm_listen_destroy(&to_weft_dev(id->device)->cm, id);
}
