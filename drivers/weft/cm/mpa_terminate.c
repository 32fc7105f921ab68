// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The last words of an initiator that has read an enhanced reply and then could
 * not get its stream going: one FPDU, built without allocating anything, since a
 * shortage of memory is the likely reason (RFC 6581, 9.3).
 */
#include "cm/mpa_terminate.h"

#include "net/tcp_socket.h"
#include "proto/crc.h"
#include "proto/ddp.h"
#include "proto/mpa_frame.h"
#include "proto/mpa_start.h"
#include "proto/rdmap.h"
#include "proto/term.h"

#define FPDU_MAX \
	(WEFT_MPA_MARKER_BYTES + WEFT_MPA_LEN_BYTES + WEFT_DDP_UNTAGGED_LEN + WEFT_TERM_MAX_LEN + \
	 3 + WEFT_MPA_CRC_BYTES)

/**
 * weft_mpa_terminate_send - say why, as the first and only FPDU of the direction
 * @s: start frames exchanged, no FPDU sent
 * @mpa: framing the peer expects
 * @fault: what to say
 *
 * Context: process; does not wait. The caller closes the socket.
 */
void weft_mpa_terminate_send(struct weft_sock *s, const struct weft_mpa_result *mpa,
			     enum weft_fault fault)
{
	const struct weft_ddp_hdr hdr = {
		.last = true,
		.ulp = weft_rdmap_ulp(WEFT_OP_TERMINATE),
		.qn = WEFT_QN_TERMINATE,
		.msn = 1,
	};
	/* A marker at stream position 0 points at what follows it: all zero. */
	u8 fpdu[FPDU_MAX] = {};
	u32 at = mpa->markers_tx ? WEFT_MPA_MARKER_BYTES : 0;
	u8 *ulpdu = fpdu + at + WEFT_MPA_LEN_BYTES;
	struct weft_fault_rec rec = {};
	u32 ulpdu_len, len;

	ulpdu_len = weft_ddp_build(&hdr, ulpdu);
	weft_fault_rec_fill(&rec, fault, NULL, 0, 0);
	ulpdu_len += weft_term_build(&rec, ulpdu + ulpdu_len);
	put_unaligned_be16(ulpdu_len, fpdu + at);
	len = at + WEFT_MPA_LEN_BYTES + ulpdu_len + weft_mpa_pad(ulpdu_len);
	weft_crc_store(weft_crc_update(WEFT_CRC_SEED, fpdu, len), fpdu + len);
	weft_sock_send(s, fpdu, len + WEFT_MPA_CRC_BYTES);
}
