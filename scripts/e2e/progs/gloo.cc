// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// One rank of a group of processes that reduce, gather and broadcast vectors with Gloo's transport
// ibverbs: queue pairs connected by hand, Writes with immediate data, events.
//
// Usage: gloo RANK RANKS DIRECTORY DEVICE GID-INDEX

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>
#include <vector>

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static const int rounds = 10;

static void check(bool good, const char *what, size_t count)
{
	if (good)
		return;
	fprintf(stderr, "%s of %zu: wrong data\n", what, count);
	_exit(1);
}

// A rank that has its result may still have a Write to wait for, and Gloo aborts a program that
// destroys the algorithm before.
static void let_writes_complete()
{
	usleep(300000);
}

// No two elements have the same sum, so a chunk in the wrong place is noticed.
template <typename Algorithm> static void reduce(Context context, const char *what, size_t count)
{
	std::vector<long> data(count);
	std::vector<long *> inputs{data.data()};
	Algorithm algorithm(context, inputs, count);
	long sum = context->size * (context->size + 1) / 2;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < count; i++)
			data[i] = (context->rank + 1) * (i + round);
		algorithm.run();
		for (size_t i = 0; i < count; i++)
			check(data[i] == sum * long(i + round), what, count);
	}
	let_writes_complete();
}

static void gather(Context context, size_t count)
{
	std::vector<long> own(count, context->rank + 1), all(count * context->size);
	std::vector<const long *> inputs{own.data()};
	gloo::AllgatherRing<long> algorithm(context, inputs, all.data(), count);

	algorithm.run();
	for (size_t i = 0; i < all.size(); i++)
		check(all[i] == long(i / count) + 1, "gather", count);
	let_writes_complete();
}

static void broadcast(Context context, size_t count)
{
	std::vector<long> data(count, context->rank);
	std::vector<long *> inputs{data.data()};
	gloo::BroadcastOneToAll<long> algorithm(context, inputs, count, context->size - 1);

	algorithm.run();
	for (long value : data)
		check(value == context->size - 1, "broadcast", count);
	let_writes_complete();
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	gloo::rendezvous::FileStore store(argv[3]);
	gloo::transport::ibverbs::attr attr = {argv[4], 1, atoi(argv[5])};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);

	context->connectFullMesh(store, device);
	for (size_t count : {1, 500000}) {
		reduce<gloo::AllreduceRingChunked<long>>(context, "ring", count);
		reduce<gloo::AllreduceHalvingDoubling<long>>(context, "halving", count);
		gather(context, count);
		broadcast(context, count);
	}
	gloo::BarrierAllToAll barrier(context);
	barrier.run();
	let_writes_complete();
	printf("done\n");
	return 0;
}
