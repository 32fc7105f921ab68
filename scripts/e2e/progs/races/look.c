// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What shows objects and counters to any process: the rdma tool's netlink socket, and sysfs. */
#define _GNU_SOURCE
#include "races.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef NETLINK_RDMA
#define NETLINK_RDMA 20
#endif

struct request {
	struct nlmsghdr header;
	unsigned char attrs[64];
};

static void put_u32(struct request *r, uint16_t type, uint32_t value)
{
	struct nlattr *a = (void *)((char *)r + NLMSG_ALIGN(r->header.nlmsg_len));

	*a = (struct nlattr){ .nla_len = NLA_HDRLEN + sizeof(value), .nla_type = type };
	memcpy((char *)a + NLA_HDRLEN, &value, sizeof(value));
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static struct request request(uint16_t command, uint16_t flags)
{
	return (struct request){ .header = { .nlmsg_len = NLMSG_HDRLEN,
					     .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
					     .nlmsg_flags = NLM_F_REQUEST | flags } };
}

static int netlink(void)
{
	static __thread int fd = -1;

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	CHECK(fd >= 0);
	return fd;
}

typedef void (*on_message)(const struct nlmsghdr *h, void *arg);

/* The errno that a message carries, also at the end of a dump. */
static int error_of(const struct nlmsghdr *h)
{
	return -*(const int *)NLMSG_DATA(h);
}

/* Ask, and hand every message of the answer to @each: an errno. */
static int ask(struct request *r, on_message each, void *arg)
{
	static __thread char answer[65536] __attribute__((aligned(8)));
	bool dump = (r->header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;

	CHECK(send(netlink(), r, r->header.nlmsg_len, 0) == r->header.nlmsg_len);
	for (;;) {
		int n = recv(netlink(), answer, sizeof(answer), 0);
		struct nlmsghdr *h = (void *)answer;

		CHECK(n > 0);
		for (; NLMSG_OK(h, (unsigned int)n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE)
				return error_of(h);
			if (each)
				each(h, arg);
		}
		if (!dump)
			return 0;
	}
}

/* The next attribute of @type behind @at, which stands in @parent; the first one after NULL. */
static const struct nlattr *next_attr(const void *begin, const void *end, uint16_t type,
				      const struct nlattr *at)
{
	const char *p = at ? (const char *)at + NLA_ALIGN(at->nla_len) : begin;

	while (p + NLA_HDRLEN <= (const char *)end) {
		const struct nlattr *a = (const void *)p;

		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static const void *inside(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static const void *behind(const struct nlattr *a)
{
	return (const char *)a + a->nla_len;
}

static uint32_t u32_of(const struct nlattr *a)
{
	uint32_t value;

	memcpy(&value, inside(a), sizeof(value));
	return value;
}

struct named {
	const char *name;
	int index;
};

static void compare_name(const struct nlmsghdr *h, void *arg)
{
	const void *end = (const char *)h + h->nlmsg_len;
	const struct nlattr *name, *index;
	struct named *n = arg;

	name = next_attr(NLMSG_DATA(h), end, RDMA_NLDEV_ATTR_DEV_NAME, NULL);
	index = next_attr(NLMSG_DATA(h), end, RDMA_NLDEV_ATTR_DEV_INDEX, NULL);
	if (name && index && !strcmp(inside(name), n->name))
		n->index = u32_of(index);
}

int device_index(void)
{
	struct request r = request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	struct named n = { .name = device_name, .index = -1 };

	ask(&r, compare_name, &n);
	return n.index;
}

/*
 * Objects of a kind: how they are asked for, what their entries and numbers are called, and
 * whether a question for one of them names a port.
 */
struct kind {
	uint16_t command;
	uint16_t table;
	uint16_t entry;
	uint16_t number;
	bool per_port;
};

/* clang-format off */
#define KIND(_name, _number, _per_port)                        \
	{                                                      \
		.command = RDMA_NLDEV_CMD_RES_##_name##_GET,   \
		.table = RDMA_NLDEV_ATTR_RES_##_name,          \
		.entry = RDMA_NLDEV_ATTR_RES_##_name##_ENTRY,  \
		.number = RDMA_NLDEV_ATTR_RES_##_number,       \
		.per_port = _per_port,                         \
	}

enum { QPS, CM_IDS, CQS, MRS, PDS, SRQS, CONTEXTS, KINDS };

static const struct kind kinds[KINDS] = {
	[QPS] = KIND(QP, LQPN, true),
	[CM_IDS] = KIND(CM_ID, CM_IDN, true),
	[CQS] = KIND(CQ, CQN, false),
	[MRS] = KIND(MR, MRN, false),
	[PDS] = KIND(PD, PDN, false),
	[SRQS] = KIND(SRQ, SRQN, false),
	[CONTEXTS] = KIND(CTX, CTXN, false),
};

/* clang-format on */

#define NUMBERS 256

struct numbers {
	const struct kind *kind;
	unsigned int count;
	uint32_t number[NUMBERS];
};

static void note_numbers(const struct nlmsghdr *h, void *arg)
{
	const void *end = (const char *)h + h->nlmsg_len;
	const struct nlattr *table, *entry, *number;
	struct numbers *found = arg;
	const struct kind *k = found->kind;

	table = next_attr(NLMSG_DATA(h), end, k->table, NULL);
	if (!table)
		return;
	for (entry = NULL; (entry = next_attr(inside(table), behind(table), k->entry, entry));) {
		number = next_attr(inside(entry), behind(entry), k->number, NULL);
		if (number && found->count < NUMBERS)
			found->number[found->count++] = u32_of(number);
	}
}

static struct request about(uint16_t command, uint16_t flags, int index)
{
	struct request r = request(command, flags);

	put_u32(&r, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	return r;
}

/*
 * One by one, which takes another way through the kernel. Many have gone by then; and an id
 * or a QP has no port before it has a peer.
 */
static bool ask_each(const struct numbers *found, int index)
{
	for (unsigned int i = 0; i < found->count; i++) {
		struct request r = about(found->kind->command, 0, index);
		int err;

		if (found->kind->per_port)
			put_u32(&r, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
		put_u32(&r, found->kind->number, found->number[i]);
		err = ask(&r, NULL, NULL);
		errno = err;
		TRY(!err || err == ENOENT || (err == EAGAIN && found->kind->per_port));
	}
	return true;
}

/* rdma resource show KIND -dd, and of one object after the other. */
static bool dump(const struct kind *kind, int index)
{
	struct numbers found = { .kind = kind };
	struct request r = about(kind->command, NLM_F_DUMP, index);

	TRY0(ask(&r, note_numbers, &found));
	return ask_each(&found, index);
}

static bool dumps(unsigned int nth)
{
	int index = device_index();

	errno = ENODEV;
	TRY(index >= 0);
	for (unsigned int i = 0; i < KINDS; i++)
		if (!dump(&kinds[i], index))
			return false;
	return true;
}

/* Again and again of one kind: many more of them meet an object that is being destroyed. */
static bool dump_often(unsigned int kind)
{
	int index = device_index();

	errno = ENODEV;
	TRY(index >= 0);
	for (int i = 0; i < 50; i++)
		if (!dump(&kinds[kind], index))
			return false;
	return true;
}

static bool dump_qps(unsigned int nth)
{
	return dump_often(QPS);
}

static bool dump_cm_ids(unsigned int nth)
{
	return dump_often(CM_IDS);
}

static bool dump_cqs(unsigned int nth)
{
	return dump_often(CQS);
}

static bool dump_mrs(unsigned int nth)
{
	return dump_often(MRS);
}

static bool dump_srqs(unsigned int nth)
{
	return dump_often(SRQS);
}

/* A command that this kernel or this driver does not have. */
static bool unsupported(int err)
{
	return err == EOPNOTSUPP || err == EINVAL || err == EPERM;
}

/* rdma resource show KIND -r, of the kinds whose raw data there might be. */
static bool raw_dumps(unsigned int nth)
{
	static const uint16_t commands[] = { RDMA_NLDEV_CMD_RES_QP_GET_RAW,
					     RDMA_NLDEV_CMD_RES_CQ_GET_RAW,
					     RDMA_NLDEV_CMD_RES_MR_GET_RAW };
	int index = device_index();

	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct request r = about(commands[i], NLM_F_DUMP, index);

		errno = ask(&r, NULL, NULL);
		TRY(!errno || unsupported(errno));
	}
	return true;
}

/* rdma resource, rdma link, rdma statistic: of the port, and of QPs. */
static bool statistics(unsigned int nth)
{
	int index = device_index();
	struct request r = about(RDMA_NLDEV_CMD_RES_GET, 0, index);

	errno = ENODEV;
	TRY(index >= 0);
	TRY0(ask(&r, NULL, NULL));
	r = about(RDMA_NLDEV_CMD_PORT_GET, 0, index);
	put_u32(&r, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	TRY0(ask(&r, NULL, NULL));
	r = about(RDMA_NLDEV_CMD_STAT_GET, 0, index);
	put_u32(&r, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	TRY0(ask(&r, NULL, NULL));
	r = about(RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP, index);
	put_u32(&r, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	TRY0(ask(&r, NULL, NULL));
	return true;
}

static int read_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char text[4096];
	int fd;

	if (type != FTW_F || !(st->st_mode & 0444) || !going())
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	return 0;
}

/* Every file of the device; some have nothing to say to iWARP. */
static bool sysfs(unsigned int nth)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/", device_name);
	if (nftw(path, read_file, 16, FTW_PHYS) < 0)
		TRY(errno == ENOENT && may_go);
	return true;
}

const struct activity look_activities[] = {
	{ .name = "dumps", .round = dumps },
	{ .name = "dump_qps", .round = dump_qps },
	{ .name = "dump_cm_ids", .round = dump_cm_ids },
	{ .name = "dump_cqs", .round = dump_cqs },
	{ .name = "dump_mrs", .round = dump_mrs },
	{ .name = "dump_srqs", .round = dump_srqs },
	{ .name = "raw_dumps", .round = raw_dumps },
	{ .name = "statistics", .round = statistics },
	{ .name = "sysfs", .round = sysfs },
	{},
};
