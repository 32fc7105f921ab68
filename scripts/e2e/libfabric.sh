#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# libfabric: its own programs, and a program of ours for what those do not use, over
# the verbs provider and over ofi_rxm on top of it.
. "$(dirname "$0")/lib.sh"

suite libfabric <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
  then: wa: 10.77.0.1, va -------- vb, 10.77.0.2 :wb   (veth, MTU 1500)
TOPOLOGY

# counter DEVICE NAME
counter() { "${srv[@]}" rdma statistic show link "$1" | grep -oE "\b$2 [0-9]+" | cut -d' ' -f2; }

# What our program asks of fi_getinfo() is in its cases; this is what people see.
offered() {
	fi_info -p verbs -v >"$tmp/info"
	expect 'type: FI_EP_MSG' "$tmp/info"
	expect 'protocol: FI_PROTO_IWARP' "$tmp/info"
	expect "domain: $dev|name: $dev" "$tmp/info"
	expect "src_addr: fi_sockaddr_in://$addr4:" "$tmp/info"
	expect "src_addr: fi_sockaddr_in6://\\[$addr6\\]:" "$tmp/info"
	expect '^ +caps: .*FI_MSG, FI_RMA, FI_ATOMIC' "$tmp/info"
	expect 'max_ep_srx_ctx: [1-9]' "$tmp/info"
	fi_info -p 'verbs;ofi_rxm' -t FI_EP_RDM >"$tmp/info"
	expect 'protocol: FI_PROTO_RXM' "$tmp/info"
}

# pingpong DEVICE FLOOR ADDRESS OPTION...: every message is checked by both sides, and the
# device carried at least so many bytes.
pingpong() {
	local device=$1 floor=$2 address=$3 before after
	shift 3
	before=$(counter "$device" tx_bytes)
	serve 47592 60 fi_pingpong -c "$@"
	client 60 fi_pingpong -c "$@" "$address"
	wait_server
	assert_no_match 'error|ret=-|data check' "$tmp/client.log"
	expect '^[0-9.]+[km]? +[0-9]+ +=[0-9]+ ' "$tmp/client.log"
	after=$(counter "$device" tx_bytes)
	[ $((after - before)) -ge "$floor" ] ||
		fail "$((after - before)) bytes of $floor went over $device"
}

all_sizes() {
	pingpong "$dev" 20000000 "$@" -S all -I 1
	expect '^64 ' "$tmp/client.log" 1
	expect '^6m ' "$tmp/client.log" 1
}

small() { pingpong "$@" -S 1024 -I 500; }

# ofi_rxm looks at events first after as many microseconds, and loses a message that came with the
# end of its peer (Documentation/programs.md): 10 ms are too few on a busy machine.
export FI_OFI_RXM_CM_PROGRESS_INTERVAL=300000

case_of() { limit 60 "$(compile fabric -lfabric)" "$@"; }

topology_dummy
t "fi_info lists both endpoints, both families" offered
t "fi_pingpong -e msg, all sizes" all_sizes "$saddr4" -p verbs -e msg
t "fi_pingpong -e msg -6, all sizes" all_sizes "$saddr6" -6 -p verbs -e msg
t "fi_pingpong -e rdm, all sizes" all_sizes "$saddr4" -p 'verbs;ofi_rxm' -e rdm
t "fi_pingpong -e rdm -6 -m tagged, all sizes" \
	all_sizes "$saddr6" -6 -p 'verbs;ofi_rxm' -e rdm -m tagged

while read -r name; do
	t "${name//_/ }" case_of "$saddr4" "$name"
done < <("$(compile fabric -lfabric)" --list)
t "messages, IPv6" case_of "$saddr6" messages
t "reliable datagrams, IPv6" case_of "$saddr6" reliable_datagrams

cleanup >/dev/null 2>&1
topology_veth
t "two namespaces: fi_pingpong -e msg" small "${driver}a" 500000 "$saddr4" -p verbs -e msg
t "two namespaces: fi_pingpong -e rdm -6" \
	small "${driver}a" 500000 "$saddr6" -6 -p 'verbs;ofi_rxm' -e rdm
finish
