# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What NFS and SMB Direct have in common: a directory that is served, and mounted in the same
# guest. Sourced after storage.sh; the suite provides mount_share WORD...
# shellcheck disable=SC2154  # tmp is lib.sh's

export_dir=/srv/weft
mnt=$tmp/mnt

umount_share() { limit 60 umount "$mnt"; }

before_test() {
	wire_up
	umount -f "$mnt"
	rm -rf "${export_dir:?}"/*
}

# copy_tree WORD...: for mount_share. What is read back comes from the server.
copy_tree() {
	tree "$tmp/tree"
	mount_share "$@"
	cp -r "$tmp/tree" "$mnt/copy"
	umount_share
	diff -r "$tmp/tree" "$export_dir/copy"
	mount_share "$@"
	diff -r "$tmp/tree" "$mnt/copy"
	umount_share
}

# load_through WORD FUNCTION [ARG]: verified I/O that has to survive it; WORD is for mount_share.
load_through() {
	local load
	mount_share "$1"
	start_load "$mnt/file" 16
	load=$started
	sleep 3
	"$2" "${3:-}"
	wait "$load" || { cat "$tmp/load"; fail "I/O did not survive"; }
	verified_io "$mnt/file" 60 --size=2m
	cmp "$mnt/file" "$export_dir/file"
	umount_share
}

silent_wire() {
	wire_down
	sleep 10
	wire_up
}
