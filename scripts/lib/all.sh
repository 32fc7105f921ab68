# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# One line for scripts that want all of scripts/lib.
# shellcheck disable=SC2154,SC2034  # variables travel between the parts

weft_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for weft_part in log tap cache deps apt-suite source distro userland kernels siw; do
	# shellcheck source=/dev/null
	. "$weft_lib/$weft_part.sh"
done
unset weft_part
