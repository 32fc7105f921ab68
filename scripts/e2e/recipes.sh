#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The recipes of Documentation/recipes.md, as written there: each line on its host, and what it
# prints. A new line needs one in expected().
. "$(dirname "$0")/lib.sh"

suite recipes <<'TOPOLOGY'
  wa: eth0 (192.0.2.1) weft0 --- veth --- wb: eth0 (192.0.2.2) weft1
TOPOLOGY

page=$here/../../Documentation/recipes.md

# lines_of SECTION: its indented lines, each with its hosts in front: "ab  ip link ...".
lines_of() {
	awk -v title="## $1" '
		/^## / { inside = $0 == title; next }
		!inside || !/^    / { next }
		/^    # host a and host b$/ { hosts = "ab"; next }
		/^    # host [ab]$/ { hosts = $3; next }
		{ sub(/^    /, ""); print hosts "\t" $0 }' "$page"
}

# The hosts share a kernel, where each device has a name of its own.
on_host() {
	local line=${2//sudo /}
	[ "$1" != b ] || line=${line//weft0/weft1} line=${line//weft_wg/weft_wg1}
	line=${line/KEY_OF_A/${key[a]:-}}
	"${prefix[$1]}" "${line/KEY_OF_B/${key[b]:-}}"
}

in_a() { ip netns exec wa bash -c "$1"; }
in_b() { ip netns exec wb bash -c "$1"; }
in_first() { bash -c "$1"; }

# expected LINE: a regular expression for what it prints.
expected() {
	case $1 in
	'rdma link show'* | *'blue rdma link show') echo 'state ACTIVE' ;;
	'rdma statistic'*) echo 'connections_active [1-9]' ;;
	'ulimit -l') echo '^([0-9]+|unlimited)$' ;;
	'rping -c'*) echo 'ping data: rdma-ping-9' ;;
	ib_write_bw*) echo ' 65536 +[0-9]+ +[0-9.]+' ;;
	ping*) echo ' 0% packet loss' ;;
	'ip route get'*) echo 'dev eth0' ;;
	'grep -l'*) echo '^/sys/class/infiniband_verbs/uverbs[0-9]+/ibdev$' ;;
	'wg genkey'*) echo '^[A-Za-z0-9+/]{43}=$' ;;
	*'nft list'*) echo 'tcp dport \{ 4791, 7174 \} drop' ;;
	sudo*) echo '^$' ;;
	*) fail "this suite does not know what '$1' prints" ;;
	esac
}

# run_line HOST LINE
run_line() {
	local want said
	case $2 in
	'rping -s'* | 'ib_write_bw -R -d weft0')
		serve_line "$@"
		return
		;;
	esac
	want=$(expected "$2") || { echo "$want"; return 1; }
	said=$(limit 60 bash -c "$(declare -f on_host in_a in_b in_first)
		$(declare -p prefix key)
		on_host '$1' '${2//\'/\'\\\'\'}'" 2>&1) || { fail "$1: $2: status $?: $said"; }
	echo "$1: $2"
	echo "$said"
	[[ $said =~ $want ]] || fail "it does not print '$want'"
	case $2 in 'wg genkey'*) key[$1]=$said ;; esac
	case $2 in *' -c '*192* | *' -c '*10.9* | ib_write_bw*) wait_server ;; esac
}

# serve_line HOST LINE: it ends with its client.
serve_line() {
	local port=7174
	[[ $2 != ib_write_bw* ]] || port=18515
	srv=(ip netns exec "w$1")
	# shellcheck disable=SC2086
	serve "$port" 90 $2
}

# recipe SECTION [FROM [TO]]: its lines, or those from and up to one that matches.
recipe() {
	local hosts line host begun=${2:-yes}
	local -A key=()
	while IFS=$'\t' read -r hosts line; do
		[[ $begun = yes || ! $line =~ $begun ]] || begun=yes
		[ "$begun" = yes ] || continue
		for ((host = 0; host < ${#hosts}; host++)); do run_line "${hosts:host:1}" "$line"; done
		count=$((count + 1))
	done < <(lines_of "$1")
	[ "$count" -ge 4 ] || fail "$count lines below '$1'"
}

declare -A prefix=()

two_namespaces() {
	modprobe -q veth
	ip netns add wa
	ip netns add wb
	ip link add eth0 netns wa type veth peer name eth0 netns wb
	ip -n wa addr add 192.0.2.1/24 dev eth0
	ip -n wb addr add 192.0.2.2/24 dev eth0
	for ns in wa wb; do
		ip -n "$ns" link set lo up
		ip -n "$ns" link set eth0 up
	done
	prefix=([a]=in_a [b]=in_b)
}

links() {
	in_a 'rdma link add weft0 type weft netdev eth0'
	in_b 'rdma link add weft1 type weft netdev eth0'
}

two_hosts() {
	local count=0
	two_namespaces
	recipe 'Two hosts'
}

# Debian's kernels have it, and User-Mode Linux's has not.
needs_module() {
	! grep -q 'User Mode Linux' /proc/cpuinfo || skip "User-Mode Linux has no $1"
	modprobe "$1"
}

wireguard() {
	local count=0 ns
	needs_module wireguard
	for ns in wa wb; do mkdir -p "/etc/netns/$ns/wireguard"; done
	mkdir -p /etc/wireguard
	two_namespaces
	recipe WireGuard
	in_a 'wg show wg0 transfer' | tee "$tmp/transfer"
	expect '[1-9][0-9]{3}' "$tmp/transfer"
}

# ping_from ADDRESS
ping_from() {
	serve 7174 30 rping -s -a 192.0.2.1 -C 3
	limit 20 ip netns exec wb rping -c -a 192.0.2.1 -I "$1" -C 3 && wait_server
}

firewall() {
	local count=0
	needs_module nf_tables
	two_namespaces
	links
	ip -n wb addr add 198.51.100.2/32 dev eth0
	ip -n wa route add 198.51.100.0/24 dev eth0
	echo 2000 >/sys/class/infiniband/weft1/params/tcp_connect_timeout_ms
	srv=(ip netns exec wa)
	ping_from 198.51.100.2
	recipe Firewalls
	ping_from 192.0.2.2
	if ping_from 198.51.100.2; then fail "another host connects"; fi
	kill "$server"
	wait "$server" || true
}

containers() {
	local count=0
	netns_mode exclusive || fail "no namespace may have devices of its own"
	ip link show eth0 >/dev/null 2>&1 || ip link add eth0 type dummy
	ip link set eth0 up
	rdma link add weft0 type weft netdev eth0
	ip netns add blue
	prefix=([a]=in_first)
	recipe Containers
	# As container runtimes do.
	ip -n blue link set lo up
	srv=(ip netns exec blue)
	serve 7174 30 rping -s -a 192.0.2.10 -C 3
	limit 20 ip netns exec blue rping -c -a 192.0.2.10 -C 3
	wait_server
	if rdma link show | grep weft_blue; then fail "seen in the first namespace"; fi
}

# Each test begins with nothing, and leaves nothing.
clean() {
	ip netns delete blue 2>/dev/null
	cleanup 2>/dev/null
	ip link delete wg0 2>/dev/null
	netns_mode shared || fail "mode shared"
}

before_test() { clean; }

t "two hosts" two_hosts
t "containers with namespaces of their own" containers
t "WireGuard" wireguard
t "firewalls" firewall
clean
finish
