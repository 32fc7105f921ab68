// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Plain TCP sockets, both ends. */
#include "idle_conns.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

void tcp_open(const char *address, int port, int count)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK("address", inet_pton(AF_INET, address, &to.sin_addr) == 1);
	CHECK("bind", !bind(listener, (struct sockaddr *)&to, sizeof(to)));
	CHECK("listen", !listen(listener, 1024));
	while (count--) {
		int client = socket(AF_INET, SOCK_STREAM, 0);

		CHECK("socket", client >= 0);
		CHECK("connect", !connect(client, (struct sockaddr *)&to, sizeof(to)));
		CHECK("accept", accept(listener, NULL, NULL) >= 0);
	}
}
