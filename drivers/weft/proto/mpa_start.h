/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * MPA start frames of both revisions: build, parse, negotiate. RFC 5044, 7.1;
 * RFC 6581, 4 to 9.
 */
#ifndef WEFT_PROTO_MPA_START_H
#define WEFT_PROTO_MPA_START_H

#include "proto/fault.h"
#include "proto/wire.h"

/*
 * Requests under way to a peer that does not say how many it takes: what programs
 * that agree on a depth by themselves have always had 8 bits for.
 */
#define WEFT_MPA_BLIND_ORD 255U

/* Kinds of ready-to-receive message, as a mask. */
enum weft_rtr {
	WEFT_RTR_SEND	= 1 << 0,
	WEFT_RTR_WRITE	= 1 << 1,
	WEFT_RTR_READ	= 1 << 2,
};

/* With either side's wish CRCs are used; so only "require" asks for the peer's. */
enum weft_mpa_crc {
	WEFT_MPA_CRC_OFF,	/* unless the peer wants them */
	WEFT_MPA_CRC_ON,
	WEFT_MPA_CRC_REQUIRE,	/* and refuse a peer that does not want them */
};

/**
 * struct weft_mpa_policy - what this side wants
 * @revision: 1 or 2; a responder answers either
 * @crc: enum weft_mpa_crc; unless it is off, C is set in our frame
 * @markers: set M: the peer must insert markers towards us
 * @p2p: offer, or accept, the peer-to-peer model
 * @rtr: mask of enum weft_rtr we can send or receive
 * @early_send: as responder where no RTR was agreed on, send after a moment: against RFC 5044,
 *	7.1.2, for initiators that wait for the first message themselves
 * @ird, @ord: what the consumer asked for
 * @ird_max: an initiator may raise its IRD up to here if the reply demands it
 */
struct weft_mpa_policy {
	u8 revision;
	u8 crc;
	bool markers;
	bool p2p;
	u8 rtr;
	bool early_send;
	u32 ird;
	u32 ord;
	u32 ird_max;
};

/**
 * struct weft_mpa_frame - a parsed start frame
 * @ird, @ord: of the enhanced block, host order, 0x3fff: not negotiated
 * @rtr: mask of kinds in the enhanced block
 * @pd, @pd_len: the consumer's private data, inside the frame that was parsed
 */
struct weft_mpa_frame {
	u8 revision;
	bool markers;
	bool crc;
	bool reject;
	bool enhanced;
	bool p2p;
	u8 rtr;
	u16 ird;
	u16 ord;
	const u8 *pd;
	u16 pd_len;
};

/**
 * struct weft_mpa_result - what both sides agreed on
 * @crc: CRC in both directions
 * @markers_tx: we insert markers; @markers_rx: the peer does
 * @rtr: 0, or the one kind an initiator must send first; for a responder the
 *	mask of kinds it accepts first
 * @early_send: a responder that waits for the first FPDU only for a moment
 * @direct: the QPs are connected by ibv_modify_qp(), see proto/direct.h
 * @extensions: of it, mask of those that both sides have
 * @rnr_told: the peer has said how long its messages may wait for a receive
 * @rnr_ms: so long
 * @ird, @ord: depths in use at this side
 */
struct weft_mpa_result {
	u8 revision;
	bool crc;
	bool markers_tx;
	bool markers_rx;
	bool enhanced;
	u8 rtr;
	bool early_send;
	bool direct;
	u16 extensions;
	bool rnr_told;
	u32 rnr_ms;
	u32 ird;
	u32 ord;
};

#define WEFT_MPA_FRAME_MAX	(WEFT_MPA_START_LEN + WEFT_MPA_PD_MAX)

/* Step one: the first WEFT_MPA_START_LEN bytes tell how many follow. */
enum weft_fault weft_mpa_start_length(const u8 *start, bool request, u16 *pd_length);

/* Step two: a whole frame of WEFT_MPA_START_LEN + pd_length bytes. */
enum weft_fault weft_mpa_start_parse(const u8 *frame, u32 len, bool request,
				     struct weft_mpa_frame *out);

/* The peer does not want CRCs, and this side insists on them. */
bool weft_mpa_crc_missing(const struct weft_mpa_frame *peer, const struct weft_mpa_policy *own);

/* How much private data of the consumer fits (508 with an enhanced block, else 512). */
u32 weft_mpa_pd_space(bool enhanced);

/*
 * All builders return the frame's length, or -EINVAL if @pd_len does not fit.
 * @out has WEFT_MPA_FRAME_MAX bytes.
 */
int weft_mpa_build_request(const struct weft_mpa_policy *policy, const void *pd, u32 pd_len,
			   u8 *out);
int weft_mpa_build_accept(const struct weft_mpa_frame *request,
			  const struct weft_mpa_policy *policy,
			  const struct weft_mpa_result *result, const void *pd, u32 pd_len,
			  u8 *out);
int weft_mpa_build_reject(const struct weft_mpa_frame *request,
			  const struct weft_mpa_policy *policy, const void *pd, u32 pd_len,
			  u8 *out);

/* Responder: WEFT_FAULT_MPA_IRD means a reject frame is due (protocol-rules, CHOICE-12). */
enum weft_fault weft_mpa_respond(const struct weft_mpa_frame *request,
				 const struct weft_mpa_policy *policy, struct weft_mpa_result *out);

/*
 * Initiator: @sent is the policy the request was built from. WEFT_FAULT_MPA_IRD
 * and WEFT_FAULT_MPA_RTR: Terminate with @out's settings, then close.
 */
enum weft_fault weft_mpa_conclude(const struct weft_mpa_frame *reply,
				  const struct weft_mpa_policy *sent, struct weft_mpa_result *out);

#endif
