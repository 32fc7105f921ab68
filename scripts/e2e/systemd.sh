#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# A link at boot as on a host: a systemd with its udevd, in namespaces of its own, starts
# weft-link@ when the network device appears, and a rule like rdma-core's renames devices.
. "$(dirname "$0")/lib.sh"

suite systemd <<'TOPOLOGY'
  wd7, wd8 (dummy): network devices that come and go
TOPOLOGY

class=/sys/class/infiniband

# units: what this systemd is given besides Debian's units, those that the host has enabled left
# out: the link, udevd, and nothing that writes below /sys or to the kernel's log. Debian 13
# would mount a /tmp of its own.
units() {
	local unit
	mkdir -p "$1/sys-subsystem-net-devices-wd7.device.wants"
	ln -s /usr/lib/systemd/system/weft-link@.service \
		"$1/sys-subsystem-net-devices-wd7.device.wants/weft-link@wd7.service"
	mkdir "$1/weft-link@.service.d"
	printf '%s\n' '[Service]' "StandardError=append:$tmp/said" >"$1/weft-link@.service.d/said.conf"
	printf '%s\n' '[Unit]' 'Wants=systemd-udevd.service' \
		'After=sysinit.target systemd-udevd.service' >"$1/weft-test.target"
	for unit in journal-flush journald random-seed sysctl sysusers tmpfiles-setup \
		tmpfiles-setup-dev tmpfiles-setup-dev-early update-utmp modules-load resolved \
		timesyncd networkd binfmt hwdb-update pstore udev-trigger machine-id-commit; do
		ln -s /dev/null "$1/systemd-$unit.service"
	done
	for unit in systemd-journald.socket systemd-journald-dev-log.socket \
		systemd-journald-audit.socket keyboard-setup.service apparmor.service \
		sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
		sys-kernel-config.mount dev-hugepages.mount dev-mqueue.mount tmp.mount; do
		ln -s /dev/null "$1/$unit"
	done
}

# What process 1 of the namespaces does before it becomes systemd.
cat >"$tmp/init" <<'SH'
#!/bin/sh
mount -t tmpfs run /run
mkdir -p /run/lock /run/netns
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind "$1/units" /etc/systemd/system
# rdma-core's own goes by the PCI slot or the permanent address, which a dummy has not.
mkdir -p /run/udev/rules.d
cat >/run/udev/rules.d/60-rdma-persistent-naming.rules <<'RULE'
ACTION=="add", SUBSYSTEM=="infiniband", PROGRAM="rdma_rename %k NAME_FIXED iwother"
RULE
exec env -u container /lib/systemd/systemd --system --unit=weft-test.target \
	--log-target=console --show-status=0
SH
chmod +x "$tmp/init"

within() { nsenter -t "$systemd" -m -p -r -w "$@"; }

# until TENTHS COMMAND...: wait for it to be so.
until_so() {
	local tries=$(($1 * slow))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

udevd_runs() { within udevadm control --ping --timeout=1; }

boot_systemd() {
	mkdir "$tmp/units"
	units "$tmp/units"
	setsid unshare --pid --mount --fork --mount-proc --propagation private \
		"$tmp/init" "$tmp" >"$tmp/systemd.log" 2>&1 </dev/null &
	unshare=$!
	until_so 100 pgrep -P "$unshare" -x systemd || return 1
	systemd=$(pgrep -P "$unshare" -x systemd)
	until_so 300 udevd_runs
}

state() { within systemctl show --value -p "$1" weft-link@wd7; }
unit_is() { [ "$(state ActiveState)" = "$1" ]; }
is_link() { [ -d "$class/$1/params" ] && rdma link show "$1/1" | grep -q "netdev $2 *\$"; }
settle() { within udevadm settle --timeout=$((30 * slow)); }

unit_status() { within systemctl --no-pager status weft-link@wd7 || true; }

appears() {
	printf 'name = weft0\nrnr_timeout_ms = 500\n' >/etc/weft/links/wd7
	[ "$(state ActiveState)" = inactive ]
	ip link add wd7 type dummy
	until_so 100 unit_is active || fail "$(unit_status)"
	is_link weft0 wd7
	[ "$(cat "$class/weft0/params/rnr_timeout_ms")" = 500 ]
}

goes_and_comes_back() {
	local round
	for round in 1 2 3; do
		ip link delete wd7
		until_so 100 unit_is inactive || fail "$round: $(unit_status)"
		[ ! -e "$class/weft0" ]
		ip link add wd7 type dummy
		until_so 100 unit_is active || fail "$round: $(unit_status)"
		is_link weft0 wd7
		[ "$(cat "$class/weft0/params/rnr_timeout_ms")" = 500 ]
	done
}

stops() {
	within systemctl stop weft-link@wd7
	[ ! -e "$class/weft0" ]
	within systemctl start weft-link@wd7
	is_link weft0 wd7
	within systemctl stop weft-link@wd7
}

wrong_file() {
	printf 'name = weft0\nno_such_thing = 1\n' >/etc/weft/links/wd7
	! within systemctl start weft-link@wd7 || fail "it started"
	[ "$(state Result)" = exit-code ]
	expect 'there is no attribute no_such_thing' "$tmp/said"
	[ ! -e "$class/weft0" ]
	printf 'name = weft0\n' >/etc/weft/links/wd7
	within systemctl reset-failed weft-link@wd7
	within systemctl start weft-link@wd7
	within systemctl stop weft-link@wd7
	ip link delete wd7
}

# The other rule renames the device, and ours gives it its name back.
name_stays() {
	ip link add wd8 type dummy
	rdma link add weft5 type weft netdev wd8
	settle
	rdma link show
	is_link weft5 wd8
	rdma link delete weft5
}

is_renamed() {
	rdma link add weft5 type weft netdev wd8
	settle
	! is_link iwother wd8 || return 0
	rdma link delete weft5
	return 1
}

# udevd 257, in these namespaces, does not run the other rule's program.
not_renamed() {
	local version
	version=$(udevadm --version)
	ip link delete wd8
	[ "${version%% *}" -ge 257 ] || fail "no device is renamed"
	skip "udevd $version renames nothing here, so the case before shows nothing"
}

# The test of the test. udevd needs some time to read the rules again.
name_goes_without_the_rule() {
	within ln -s /dev/null /run/udev/rules.d/61-weft.rules
	within udevadm control --reload
	until_so 50 is_renamed || not_renamed
	rdma link delete iwother
	within rm /run/udev/rules.d/61-weft.rules
	within udevadm control --reload
	ip link delete wd8
}

mkdir -p /etc/weft/links
if ! boot_systemd; then
	echo "Bail out! systemd does not come up"
	diagnose <"$tmp/systemd.log"
	exit 1
fi
t "the link is made when its network device appears" appears
t "it is removed and added with the network device" goes_and_comes_back
t "the unit is stopped and started" stops
t "a file that is wrong fails the unit and says why" wrong_file
t "udev keeps the given name" name_stays
t "without our rule it does not" name_goes_without_the_rule
kill -KILL "$systemd"
wait "$unshare" 2>/dev/null
finish
