#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The recipes of Documentation/recipes.md, as written there: each line on its host, and what it
# prints. A new line needs one in expected().
. "$(dirname "$0")/lib.sh"
. "$here/storage.sh"

suite recipes <<'TOPOLOGY'
  wa: eth0 (192.0.2.1) weft0 --- veth --- wb: eth0 (192.0.2.2) weft1
  storage: host a is host b, eth0 (192.0.2.1) weft0, with the disk /dev/sdb in memory
TOPOLOGY

page=$here/../../Documentation/recipes.md

# Nothing is left of storage either: its tests delete the device, and with it the core's CQs.
after_test() { idle && new_splats; }

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
	local word=${1#echo }
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
	*'nvme connect'*) echo '^$|device: nvme[0-9]' ;;
	*'nvme list') echo '/dev/nvme[0-9]+n1 ' ;;
	*'nvme disconnect'*) echo 'disk1 disconnected 1 controller' ;;
	*'systemctl restart nfs-server') echo '^$' ;;
	*portlist) echo 'rdma 20049' ;;
	grep*/proc/mounts) echo 'proto=rdma' ;;
	"echo '/srv"*) echo '^/srv 192' ;;
	printf*nfsd*) echo 'rdma-port=20049' ;;
	echo*'| sudo tee'*) echo "^${word%% *}\$" ;;
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
	'cd '*)
		cd "${2#cd }"
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

# recipe SECTION [LINE COMMAND]: its lines; the first one that matches LINE is followed by COMMAND.
recipe() {
	local hosts line host after=${2:-}
	local -A key=()
	while IFS=$'\t' read -r hosts line; do
		for ((host = 0; host < ${#hosts}; host++)); do run_line "${hosts:host:1}" "$line"; done
		count=$((count + 1))
		[[ -n $after && $line =~ $after ]] || continue
		after=''
		"$3"
	done < <(lines_of "$1")
	[ "$count" -ge 4 ] || fail "$count lines below '$1'"
	[ -z "$after" ] || fail "no line '$after' below '$1'"
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

# Debian's kernels have all of them; of User-Mode Linux's, those of --consumers have storage.
needs_module() {
	local module
	for module; do
		modprobe -q "$module" && continue
		! grep -q 'User Mode Linux' /proc/cpuinfo || skip "User-Mode Linux has no $module"
		fail "no module $module"
	done
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

# The kernel's targets serve the first namespace only.
one_host() {
	ip link show eth0 >/dev/null 2>&1 || ip link add eth0 type dummy
	ip link set eth0 up
	ip addr add 192.0.2.1/24 dev eth0
	rdma link add weft0 type weft netdev eth0
	prefix=([a]=in_first [b]=in_first)
}

# What the disk holds is what was written to it over the network.
disk_is_there() {
	local ns
	ns=$(nvme list | grep -om 1 '/dev/nvme[0-9]*n1')
	verified_io "$ns" 60 --size=2m
	sync
	same_disks "$ns" /dev/sdb
}

nvme_over_fabrics() {
	local count=0
	needs_module nvmet-rdma nvme-rdma null_blk
	one_host
	memory_disk recipe 32
	ln -s "$disk" /dev/sdb
	recipe 'NVMe over Fabrics' 'nvme list$' disk_is_there
	cd "$here"
	rm /dev/sdb
	memory_disks_gone
	if controllers; then fail "a controller is left"; fi
	limit 20 rdma link delete weft0
}

controllers() { grep -lx disk1 /sys/class/nvme/nvme*/subsysnqn 2>/dev/null; }

# The guest has no systemd: the unit's commands, after those of the units that it wants.
systemctl_of_a_guest() {
	mkdir -p "$tmp/path"
	cat >"$tmp/path/systemctl" <<-'SH'
		#!/bin/bash
		[ "$*" = "restart nfs-server" ] || exit 1
		exec >/dev/null 2>&1
		pgrep -x rpcbind || rpcbind -w
		pgrep -x rpc.mountd || rpc.mountd
		sed -nE 's/^ExecStart(Pre)?=-?//p' /usr/lib/systemd/system/nfs-server.service |
			while read -r line; do $line || exit; done
		# No client has locks to reclaim.
		echo Y >/proc/fs/nfsd/v4_end_grace
	SH
	chmod +x "$tmp/path/systemctl"
	PATH=$tmp/path:$PATH
}

nfs() {
	local count=0
	needs_module rpcrdma nfsd nfsv4
	one_host
	systemctl_of_a_guest
	mount -t tmpfs nfs /var/lib/nfs
	mkdir -p /var/lib/nfs/{rpc_pipefs,v4recovery,sm,sm.bak} /srv
	touch /var/lib/nfs/{etab,rmtab,state}
	mount -t tmpfs -o mode=1777 srv /srv
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	tree /srv/tree
	recipe NFS
	diff -r /srv/tree /mnt/tree
	head -c 3000000 /srv/tree/sub/3000001 >/mnt/written
	sync -f /mnt
	cmp -n 3000000 /srv/written /srv/tree/sub/3000001
	limit 60 umount /mnt
	rpc.nfsd 0
	pkill -x 'rpc.mountd|rpcbind'
	exportfs -au
	umount /srv
	limit 20 rdma link delete weft0
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
t "NVMe over Fabrics" nvme_over_fabrics
t "NFS" nfs
clean
finish
