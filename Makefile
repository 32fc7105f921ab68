# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The targets people use; `make help` lists them. The kernel's build system
# reads Kbuild instead.

# The running kernel's headers, else the newest ones installed.
running := $(wildcard /lib/modules/$(shell uname -r)/build)
newest := $(lastword $(shell ls -dv /usr/src/linux-headers-*[0-9]-* \
	/lib/modules/*/build 2>/dev/null | grep -v -e '-common'))
KERNELDIR ?= $(or $(running),$(newest))
# Debian's kernel.release is not what uname -r says; this is.
RELEASE := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KERNELDIR)/include/generated/utsrelease.h 2>/dev/null)

DESTDIR ?=
INSTALL ?= install

# A User-Mode Linux tree says so itself.
uml := $(shell grep -s '^CONFIG_UML=y' $(KERNELDIR)/include/config/auto.conf)
ARCH ?= $(if $(uml),um)
ifeq ($(ARCH),)
undefine ARCH
else
export ARCH
endif

HAVE := $(CURDIR)/drivers/weft/generated/have.h
KBUILD = $(MAKE) -C $(KERNELDIR) M=$(CURDIR)

.PHONY: all modules provider kunit vectors check test test-all test-debug fuzz mutants coverage bench bench-wire bench-guest demo \
	docs-html e2e install \
	install-modules install-provider install-boot install-man deb clean clean-modules help have kerneldir

all: modules provider ## the module and the provider

modules: have ## drivers/weft/weft.ko for KERNELDIR
	+$(KBUILD) modules

have: kerneldir
	@CC='$(if $(findstring command,$(origin CC)),$(CC))' \
		scripts/conftest.sh $(KERNELDIR) $(HAVE)

# Of a tree that cannot be built against one line says why, and what to do.
kerneldir:
	@no() { echo "weft: KERNELDIR='$(KERNELDIR)' is $$*" >&2; exit 1; }; \
	[ -n '$(RELEASE)' ] || no "no configured kernel tree: install" \
		"linux-headers-$$(dpkg --print-architecture) or run scripts/deps build"; \
	case '$(RELEASE)' in [0-5].* | 6.0 | 6.0[!0-9]*) \
		no "of Linux $(RELEASE), and weft needs 6.1 or later: name another tree" ;; \
	esac; \
	for option in INFINIBAND INFINIBAND_ADDR_TRANS; do \
		grep -qs "^CONFIG_$$option=[ym]" '$(KERNELDIR)/include/config/auto.conf' || \
			no "of a kernel without CONFIG_$$option: name the tree of another kernel"; \
	done

provider: ## userspace-provider/libweft-rdmavNN.so
	+$(MAKE) -C userspace-provider

kunit: ## the KUnit suites, in User-Mode Linux
	scripts/test kunit

vectors: kunit-tests/vectors.h ## the bytes of the wire that the KUnit suites compare with, as C tables

kunit-tests/vectors.h: kunit-tests/vectors.py kunit-tests/vectors_to_c.py
	python3 kunit-tests/vectors.py | python3 kunit-tests/vectors_to_c.py > $@

check: ## every linter
	scripts/lint

test: ## linters, KUnit, guests: the default parts of testing.md; or TEST=SUITE, SUITE/CASE, ...
	$(if $(TEST),scripts/run-test $(TEST),scripts/test)

test-all: ## besides, the parts of testing.md that take longer: hours
	scripts/test --all

test-debug: ## KUnit and smoke in a kernel with KASAN and lockdep
	scripts/test debug

fuzz: ## libFuzzer over all that strangers reach; FUZZ_RUNS=N for each target, FUZZ_SECONDS
	scripts/fuzz

mutants: ## named faults of the driver and the provider, and what notices each; takes hours
	scripts/mutants --all

coverage: ## lines and branches of the driver and the provider that the tests run; takes long
	scripts/coverage

e2e: ## end-to-end suites in the guest
	scripts/test e2e

bench: ## side by side with siw, rxe and TCP, newest kernel; page and plots
	scripts/bench --uml --write

bench-wire: ## two hosts on a cable, one CPU each; page and plots
	scripts/bench --wire --write

bench-guest: ## the same on Debian's 6.1 in QEMU
	scripts/bench --write

demo: ## rping and ib_send_bw over weft, in a guest
	scripts/demo

docs-html: ## the documents and the kernel-doc comments as HTML, in build/html
	scripts/docs-html

deb: ## Debian packages: weft-dkms, libweft-provider, weft-doc, in build/deb
	scripts/deb

install: install-modules install-provider install-boot install-man ## below DESTDIR

install-modules: kerneldir
	$(INSTALL) -D -m 644 drivers/weft/weft.ko \
		$(DESTDIR)/lib/modules/$(RELEASE)/updates/weft.ko
	$(if $(DESTDIR),,depmod $(RELEASE))

install-provider:
	+$(MAKE) -C userspace-provider install DESTDIR=$(DESTDIR)

# Links at boot, names, what is loaded with the module, and the live view.
install-boot:
	$(INSTALL) -d $(DESTDIR)/etc/weft/links
	$(INSTALL) -D -m 755 scripts/boot/weft-link $(DESTDIR)/usr/sbin/weft-link
	$(INSTALL) -D -m 755 scripts/weft-top $(DESTDIR)/usr/bin/weft-top
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/lib/systemd/system scripts/boot/weft-link@.service
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/lib/udev/rules.d scripts/boot/61-weft.rules
	$(INSTALL) -D -m 644 scripts/boot/modprobe.conf $(DESTDIR)/etc/modprobe.d/weft.conf
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/share/doc/weft/examples \
		scripts/boot/memlock.conf scripts/boot/link.example

install-man:
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/share/man/man7 Documentation/man/weft.7
	$(INSTALL) -D -m 644 -t $(DESTDIR)/usr/share/man/man8 Documentation/man/weft-link.8

clean: clean-modules ## what the build made
	+$(MAKE) -C userspace-provider clean

clean-modules:
	+$(if $(RELEASE),$(KBUILD) clean)
	rm -rf $(dir $(HAVE))

help: ## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' Makefile | expand -t 12 | sed 's/^/  /'
	@echo
	@echo 'Variables: KERNELDIR=$(KERNELDIR)'
	@echo '           DESTDIR= V=1 W=1 C=1 ARCH=um LLVM=1'
