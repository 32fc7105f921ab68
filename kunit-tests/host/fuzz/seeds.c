// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Writes the wire vectors where the fuzzers start from: seeds DIRECTORY, which has
 * one directory per target. What stands in front of the octets is the target's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "proto/env.h"
#include "vectors.h"

static const char *directory;

static void seed(const char *target, const char *name, const u8 *front, u32 front_len,
		 const void *octets, u32 len)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", directory, target, name);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	fwrite(front, 1, front_len, f);
	fwrite(octets, 1, len, f);
	fclose(f);
}

static void seed_frames(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weft_vec_start); i++) {
		const struct weft_vec_start *v = &weft_vec_start[i];
		const u8 front[13] = { v->request, 0xff, 0, 0, 8, 0, 0, 8, 0, 0, 16 };

		seed("mpa_start", v->name, front, sizeof(front), v->wire, v->len);
	}
}

static void seed_streams(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weft_vec_stream); i++) {
		const struct weft_vec_stream *v = &weft_vec_stream[i];
		const u8 front[5] = { v->markers_on, 0, 0, v->pos >> 8, v->pos & 0xff };

		seed("mpa_frame", v->name, front, sizeof(front), v->wire, v->len);
	}
}

static void seed_segments(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weft_vec_segment); i++) {
		const struct weft_vec_segment *v = &weft_vec_segment[i];
		const u8 front[4] = { v->len >> 8, v->len & 0xff, 0, 70 };

		seed("segment", v->name, front, sizeof(front), v->ulpdu, v->len);
	}
}

static void seed_terminates(void)
{
	static const u8 front[2] = { 20, 46 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weft_vec_term); i++)
		seed("term", weft_vec_term[i].name, front, sizeof(front), weft_vec_term[i].payload,
		     weft_vec_term[i].len);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: seeds DIRECTORY\n");
		return 2;
	}
	directory = argv[1];
	seed_frames();
	seed_streams();
	seed_segments();
	seed_terminates();
	return 0;
}
