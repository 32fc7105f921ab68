#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rdma-core's own test suite, as Debian packages it, unmodified. What an iWARP
# device must pass and what it must decline (with EOPNOTSUPP, which the suite
# turns into a skip) is listed by name. The rest of the suite brings QPs up by
# hand, which no iWARP device can do, and is not judged.
. "$(dirname "$0")/lib.sh"

suite pyverbs <<'TOPOLOGY'
  all tests --- eth0 (virtio-net, 10.77.0.1): the suite looks for the address of
  the device's parent, which dummy netdevs do not have
TOPOLOGY

log=$tmp/pyverbs.log
table=$tmp/pyverbs.table
tests_dir=/usr/share/doc/rdma-core/tests

topology_parent() {
	ip addr flush dev eth0
	ip addr add "$addr4/24" dev eth0
	ip link set eth0 up
	rdma link add "$dev" type "$driver" netdev eth0
}

unpack() {
	cp -r "$tests_dir" "$tmp/t"
	find "$tmp/t" -name '*.gz' -exec gunzip -f {} +
	[ -e "$tmp/t/run_tests.py" ]
}

run_suite() {
	unpack
	limit 240 /usr/bin/python3 "$tmp/t/run_tests.py" --dev "$dev" --port 1 --gid 0 -v \
		tests.test_pd tests.test_device tests.test_cq tests.test_qp tests.test_mr \
		tests.test_rdmacm >"$log" 2>&1 || true
	cat "$log"
	python3 "$here/progs/pyverbs.py" "$log" >"$table"
	[ "$(wc -l <"$table")" -ge 93 ] || fail "too few tests ran"
}

outcome() {
	local test result remark
	while read -r test result remark; do
		[ "$test" != "$1" ] && continue
		echo "$result $remark"
		[ "$result" != "$2" ] || return 0
	done <"$table"
	# What unittest said of it: a block that ends at the next rule.
	sed -n "/^\(ERROR\|FAIL\): ${1#*.} /,/^=====/p" "$log"
	fail "$1 must $2"
}

must() {
	local result=$1 module=$2 name
	shift 2
	for name; do told "$module.$name must $result" outcome "$module.test_$name" "$result"; done
}

modprobe -q virtio_net
if [ ! -e /sys/class/net/eth0 ]; then
	echo "1..0 # SKIP no network device with a parent in this guest"
	exit 0
fi
topology_parent
t "the suite runs to its end" run_suite

must pass test_pd alloc_pd dealloc_pd multiple_pd_creation destroy_pd_twice
must pass test_device dev_list open_dev query_device query_pkey query_gid query_gid_table \
	query_gid_table_bad_flow query_gid_ex query_device_ex phys_port_cnt_ex query_port \
	query_port_bad_flow
must skip test_device query_gid_ex_bad_flow create_dm destroy_dm create_dm_bad_flow \
	destroy_dm_bad_flow dm_write dm_write_bad_flow dm_read multi_process_alloc_dm import_dm
must pass test_cq create_cq create_cq_with_comp_channel create_cq_bad_flow
must skip test_cq resize_cq
must pass test_qp create_rc_qp_no_attr create_rc_qp_with_attr create_rc_qp_ex_no_attr \
	create_rc_qp_ex_with_attr query_rc_qp
for kind in uc ud raw; do
	must skip test_qp "create_${kind}_qp_no_attr" "create_${kind}_qp_with_attr" \
		"create_${kind}_qp_ex_no_attr" "create_${kind}_qp_ex_with_attr" "query_${kind}_qp"
done
must skip test_qp modify_ud_qp query_data_in_order \
	create_raw_qp_ex_with_illegal_caps_max_send_wr \
	create_raw_qp_ex_with_illegal_caps_max_send_sge \
	create_raw_qp_ex_with_illegal_caps_max_recv_sge \
	create_raw_qp_ex_with_illegal_caps_max_recv_wr
must pass test_mr reg_mr_bad_flags reg_mw_wrong_type
must skip test_mr create_dm_mr dm_bad_access dm_bad_registration dm_traffic dm_remote_traffic \
	dmabuf_reg_mr dmabuf_dereg_mr dmabuf_dereg_mr_twice dmabuf_reg_mr_bad_flags \
	dmabuf_write dmabuf_read dmabuf_lkey dmabuf_rkey dmabuf_rc_traffic dmabuf_rdma_traffic
must pass test_rdmacm rdmacm_sync_traffic rdmacm_async_reject_traffic rdmacm_async_read \
	rdmacm_async_write
must skip test_rdmacm rdmacm_async_multicast_traffic rdmacm_async_ex_multicast_traffic \
	rdmacm_async_ex_leave_multicast_traffic
finish
