/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The GID table of a device: what rdma_cm looks up, then the addresses of the netdev.
 */
#ifndef WEFT_VERBS_GID_H
#define WEFT_VERBS_GID_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

struct net_device;
struct weft_device;

/* As many as RoCE devices have as a rule. An address beyond that has no GID. */
#define WEFT_GIDS	128

/**
 * struct weft_gids - the table
 * @all: in the list of all tables
 * @lock: protects @gid
 * @gid: all zero where there is none
 * @refresh: reads the addresses again; holds a reference to the registered device
 */
struct weft_gids {
	struct list_head all;
	struct mutex lock; /* gid */
	union ib_gid gid[WEFT_GIDS];
	struct work_struct refresh;
};

void weft_gids_init(struct weft_device *dev);
void weft_gids_exit(struct weft_device *dev);
void weft_gids_refresh(struct weft_device *dev);
int weft_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid);

int weft_gids_watch(void);
void weft_gids_unwatch(void);

#endif
