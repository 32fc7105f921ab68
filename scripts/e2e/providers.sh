#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# One module, many libibverbs: each finds the plugin of its private ABI. scripts/test-providers
# runs it: LIBRARIES are directories with a library each, PLUGINS has the plugins, OLDER_PLUGINS and
# NEWER_PLUGINS have those of another version of the module's interface.
. "$(dirname "$0")/lib.sh"

suite providers <<'TOPOLOGY'
  server and client --- wd0 (dummy, 10.77.0.1, fd77::1) --- lo
TOPOLOGY

# where DIR: the libraries of a root of Debian, or of a built tree.
where() {
	local dir
	for dir in "$1/usr/lib/x86_64-linux-gnu" "$1/lib"; do
		[ ! -e "$dir/libibverbs.so.1" ] || { echo "$dir"; return; }
	done
	fail "no libibverbs in $1"
}

# under LIBS PROGRAM...: with these libraries; of a root of Debian with its own loader, since a C
# library fits no other, and of a built tree the tree's program: ibv_devinfo fits no other
# private ABI. A program, for the deadlines.
cat >"$tmp/under" <<'SH'
#!/bin/sh
libs=$1 program=$2
shift 2
[ ! -e "$libs/ld-linux-x86-64.so.2" ] ||
	exec "$libs/ld-linux-x86-64.so.2" --library-path "$libs" "$libs/../../bin/$program" "$@"
for bin in "$libs/../bin" "$libs/../../bin"; do
	[ ! -x "$bin/$program" ] || LD_LIBRARY_PATH=$libs exec "$bin/$program" "$@"
done
SH
chmod +x "$tmp/under"

abi_of() { grep -a -o 'IBVERBS_PRIVATE_[0-9]*' "$1/libibverbs.so.1" | head -n 1; }

# drivers LIBS LINE: what these libraries read for weft; a built tree, whose directory it is,
# reads it there. It names a path, so that the directory of plugins makes no difference.
drivers() {
	local etc=$1/../etc
	[ -d "$etc/libibverbs.d" ] || etc=/etc
	mkdir -p "$etc/libibverbs.d"
	rm -f "$etc"/libibverbs.d/*
	echo "$2" >"$etc/libibverbs.d/weft.driver"
}

# plugin_for LIBS [PLUGINS]
plugin_for() {
	local abi plugins=${2:-$PLUGINS}
	abi=$(abi_of "$1")
	abi=${abi##*_}
	drivers "$1" "driver $plugins/$abi/libweft"
	[ -e "$plugins/$abi/libweft-rdmav$abi.so" ] || fail "no plugin for $abi"
}

# opens LIBS [PLUGINS]
opens() {
	plugin_for "$@"
	"$tmp/under" "$1" ibv_devinfo -v -d "$dev" >"$tmp/info" 2>&1 || fail "$(cat "$tmp/info")"
	expect 'transport:.*iWARP' "$tmp/info" 1
	expect 'PORT_ACTIVE \(4\)' "$tmp/info" 1
}

rpings() {
	serve 7174 60 "$tmp/under" "$1" rping -s -a "$saddr4" -v -V -C 10
	client 60 "$tmp/under" "$1" rping -c -a "$saddr4" -v -V -C 10
	wait_server
	expect 'ping data: rdma-ping-9' "$tmp/client.log" 1
}

# ibv_rc_pingpong makes its CQ by create_cq_ex where it is asked for timestamps.
pingpongs() {
	serve 18515 60 "$tmp/under" "$1" ibv_rc_pingpong -d "$dev" -g 1 -n 200 -t
	client 60 "$tmp/under" "$1" ibv_rc_pingpong -d "$dev" -g 1 -n 200 -t "$saddr4"
	wait_server
}

of_no_plugin() {
	drivers "$1" "driver $PLUGINS/34/libnone"
	"$tmp/under" "$1" ibv_devices >"$tmp/devices" 2>&1 || true
	assert_no_match "^ *$dev" "$tmp/devices"
	expect "couldn't load driver" "$tmp/devices"
}

# A plugin that is older than the module does not know what this one wants of it.
of_an_older_version() {
	plugin_for "$1" "$OLDER_PLUGINS"
	"$tmp/under" "$1" ibv_devices >"$tmp/devices" 2>&1
	assert_no_match "^ *$dev" "$tmp/devices"
	expect 'does not support the kernel ABI of [0-9]+ \(supports [0-9]+ to [0-9]+\)' "$tmp/devices"
}

of_a_newer_version() {
	opens "$1" "$NEWER_PLUGINS"
	rpings "$1"
}

# rping of rdma-core 64 and later can wait for an event that is gone: its last thread looks
# whether there is one, rdma_destroy_id() takes it away, and rdma_get_cm_event() waits.
attempts=2
topology_dummy
[ -n "${LIBRARIES:-}" ] || { echo "Bail out! LIBRARIES is not given"; exit 1; }
for root in $LIBRARIES; do
	libs=$(where "$root")
	name="${root#"${root%/*/*}"/}, $(abi_of "$libs")"
	t "$name: the device is opened" opens "$libs"
	t "$name: rping" rpings "$libs"
	t "$name: ibv_rc_pingpong with an extended CQ" pingpongs "$libs"
done
t "without a plugin there is a message, and no device" of_no_plugin "$libs"
# shellcheck disable=SC2086  # directories
libs=$(where ${LIBRARIES%% *})
t "a plugin older than the module: a message, and no device" of_an_older_version "$libs"
t "a plugin newer than the module works" of_a_newer_version "$libs"
finish
