#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What goes over the wire, judged by an independent decoder: tshark.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034  # for lib.sh
attempts=2

suite wire <<'TOPOLOGY'
  namespace wa                      namespace wb
  server, 10.77.0.1, fd77::1        client, 10.77.0.2, fd77::2
  va ----------- veth, MTU 1500 ------------ vb
  (captured here)
TOPOLOGY
only_plugins "$driver"

capture=${WEFT_RESULTS:-$tmp}/wire.pcap
table=$tmp/wire.json

record() {
	"${srv[@]}" timeout $((600 * slow)) tcpdump -i va -s 0 -B 16384 --immediate-mode -w "$capture" tcp \
		>"$tmp/tcpdump.log" 2>&1 &
	for _ in $(seq 100); do
		grep -q 'listening on' "$tmp/tcpdump.log" && return
		sleep 0.1
	done
	cat "$tmp/tcpdump.log"
}

end_record() {
	sleep 1
	pkill -INT -x tcpdump
	while pgrep -x tcpdump; do sleep 0.1; done
	cat "$tmp/tcpdump.log"
}

rounds() { rping_pair 60 "$1" 5 -V -S 20000; }

bw() { perftest 90 "$1" "${driver}a" "${driver}b" -s "$2" -n "$3" "${@:4}"; }

nothing_lost() {
	end_record
	expect '^0 packets dropped by kernel' "$tmp/tcpdump.log" 1
	limit 240 python3 "$here/progs/wire.py" decode "$capture" "$table"
}

check() { python3 "$here/progs/wire.py" "$1" "$table" --suite; }

topology_veth
record
t "rping between two namespaces" rounds "$saddr4"
t "rping between two namespaces, IPv6" rounds "$saddr6"
t "ib_send_bw of 64 KiB between two namespaces" bw ib_send_bw 65536 5
t "ib_write_bw of 64 KiB between two namespaces" bw ib_write_bw 65536 5
t "ib_read_bw of 64 KiB between two namespaces" bw ib_read_bw 65536 5
t "ib_send_bw of 1000 bytes between two namespaces" bw ib_send_bw 1000 20
t "ib_atomic_bw between two namespaces, FetchAdd" bw ib_atomic_bw 8 20 -A FETCH_AND_ADD
t "ib_atomic_bw between two namespaces, CmpSwap" bw ib_atomic_bw 8 20 -A CMP_AND_SWAP
t "tshark decodes the capture" nothing_lost
finding "start frames: one request, one reply, CRC on" check start_frames_well_formed
finding "every byte belongs to a start frame or an FPDU" check every_byte_decoded
finding "every CRC is good" check crcs_good
finding "untagged messages: MSN, offset and last flag in order" check messages_in_order
finding "tagged messages: offsets without gaps" check tagged_in_order
finding "Read Responses go where the request said" check reads_answered_to_the_sink
finding "tshark decodes the atomics, and each has its answer" check atomics_answered
finding "the initiator sends first" check initiator_first
finding "FPDUs fill a TCP segment and no more" check segments_fit
finding "TCP segments hold whole FPDUs" check packets_end_on_fpdus
finding "each of these judges finds what is corrupted for it" check judges_object
finish
