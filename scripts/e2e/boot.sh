#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What `make install` installs for the boot: weft-link with its files, and what is loaded with
# the module.
. "$(dirname "$0")/lib.sh"

suite boot <<'TOPOLOGY'
  wd0 (dummy, 10.77.0.1, fd77::1), without a weft device at first
TOPOLOGY

links=/etc/weft/links

device_goes() {
	[ ! -d "/sys/class/infiniband/$1" ] || rdma link delete "$1"
}

# told_about PATTERN COMMAND...: it fails with status 1, and its one line says why.
told_about() {
	local pattern=$1 rc=0
	shift
	"$@" >"$tmp/said" 2>&1 || rc=$?
	[ "$rc" -eq 1 ] || fail "$*: status $rc"
	expect "$pattern" "$tmp/said" 1
	[ "$(wc -l <"$tmp/said")" -eq 1 ] || fail "$(cat "$tmp/said")"
}

up_and_down() {
	printf '# of mine\nname = weft0\nrnr_timeout_ms=500   # half a second\n\n' >"$links/wd0"
	weft-link up wd0
	[ "$(cat "/sys/class/infiniband/weft0/params/rnr_timeout_ms")" = 500 ]
	rdma link show weft0/1 | tee "$tmp/link"
	expect 'netdev wd0' "$tmp/link" 1
	weft-link down wd0
	[ ! -e /sys/class/infiniband/weft0 ]
	weft-link down wd0
}

without_a_file() {
	rm -f "$links/wd0"
	weft-link up wd0
	[ -d /sys/class/infiniband/weft_wd0/params ]
	weft-link down wd0
}

up_again_changes_what_the_file_says() {
	local index
	printf 'name=weft0\n' >"$links/wd0"
	weft-link up wd0
	index=$(rdma dev show weft0 | cut -d: -f1)
	printf 'name=weft9\nrnr_timeout_ms=700\n' >"$links/wd0"
	weft-link up wd0
	[ "$(rdma dev show weft9 | cut -d: -f1)" = "$index" ]
	[ "$(cat /sys/class/infiniband/weft9/params/rnr_timeout_ms)" = 700 ]
	weft-link down wd0
}

netdev_comes_back() {
	printf 'name=weft0\n' >"$links/wd1"
	ip link add wd1 type dummy
	weft-link up wd1
	ip link delete wd1
	weft-link down wd1
	ip link add wd1 type dummy
	weft-link up wd1
	[ -d /sys/class/infiniband/weft0/params ]
	weft-link down wd1
	ip link delete wd1
	rm "$links/wd1"
}

wrong_files() {
	printf 'name=weft0\nno_such_thing=1\n' >"$links/wd0"
	told_about 'there is no attribute no_such_thing' weft-link up wd0
	[ ! -e /sys/class/infiniband/weft0 ] || fail "the device stayed"
	printf 'name=weft0\nrnr_timeout_ms=long\n' >"$links/wd0"
	told_about 'rnr_timeout_ms does not take long' weft-link up wd0
	printf 'name=weft0\nrm -rf /tmp\n' >"$links/wd0"
	told_about 'not KEY=VALUE: rm -rf /tmp' weft-link up wd0
	told_about 'not KEY=VALUE: rm -rf /tmp' weft-link check wd0
	printf 'name=weft0\n../../weft0/params/mpa_crc=1\n' >"$links/wd0"
	told_about 'not KEY=VALUE' weft-link up wd0
	[ ! -e /sys/class/infiniband/weft0 ]
	told_about 'no name of a network device' weft-link up ../links/wd0
}

modprobe_knows() {
	modprobe -c >"$tmp/modprobe"
	expect '^softdep weft post: rdma_ucm' "$tmp/modprobe" 1
}

topology_dummy
rdma link delete "$dev"
mkdir -p "$links"
t "a file's name and attributes, up and down" up_and_down
t "without a file" without_a_file
t "up again, with another file" up_again_changes_what_the_file_says
t "the network device is removed and added again" netdev_comes_back
t "wrong files are reported in one line each" wrong_files
t "rdma_ucm is loaded with the module" modprobe_knows
device_goes weft0
finish
