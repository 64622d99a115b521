# SPDX-License-Identifier: GPL-2.0
# What people type. The module's own build is in Kbuild.
#
#   make demo		set up, boot a virtual machine, run 240 tasks in one address space
#   make check		set up, and run all tests on both kernels
#   make		build all for this machine's kernel (KVER=... for another)
#   make bench		the benchmarks: bench/run (bench-quick: shorter)

KVER	?= $(shell uname -r)
KDIR	?= /lib/modules/$(KVER)/build
BUILD	:= $(CURDIR)/build
MODDIR	:= $(BUILD)/$(KVER)
# The kernels that the virtual machine boots
KERNELS	:= 6.1 6.12
KERNEL	?= 6.12
N	?= 240
prefix	?= /usr/local
# Packages may put the built tree elsewhere: each part knows O.
export O := $(BUILD)

user	:= libpvas pvasrun examples tools

.PHONY: all module module-all $(user) deps demo check style check-debug bench bench-quick install \
	install-module clean

all: module $(user)

# The kernel writes objects beside the sources: build a copy, one a kernel.
module:
	@[ -d $(KDIR) ] || { echo "make: no headers for Linux $(KVER) in $(KDIR)" \
		"(install linux-headers-$(KVER), or name another: KVER=...)" >&2; exit 1; }
	@mkdir -p $(MODDIR)/src
	@cp -ru Kbuild kmod include $(MODDIR)/src/
	@flock $(MODDIR) $(MAKE) -s -C $(KDIR) M=$(MODDIR)/src W=1 $(MODFLAGS) modules
	@cp -u $(MODDIR)/src/pvas.ko $(MODDIR)/pvas.ko

module-all:
	@for k in $(KERNELS); do \
		r=$$(scripts/kernel-release $$k) && $(MAKE) -s module KVER=$$r && \
		echo "pvas.ko for $$r" || exit 1; \
	done

libpvas:
	@$(MAKE) -s -C libpvas
pvasrun examples: libpvas
	@$(MAKE) -s -C $@
tools:
	@$(MAKE) -s -C tools/ps
	@$(MAKE) -s -C tools/gdb

deps:
	@scripts/install-deps

demo: deps
	@$(MAKE) -s libpvas pvasrun examples
	@selftests/vm/run --kernel $(KERNEL) --keep-env O -- examples/demo $(N)

check: deps
	@scripts/check

style:
	@scripts/check-style

check-debug: deps
	@CHECK_STAGES=scripts/check-debug.stages scripts/check

bench: deps
	@bench/run --kernel $(KERNEL)
bench-quick: deps
	@bench/run --kernel $(KERNEL) --quick

install:
	@$(MAKE) -C libpvas install prefix=$(prefix)
	@$(MAKE) -C pvasrun install prefix=$(prefix)
	@$(MAKE) -C tools/ps install prefix=$(prefix)
	@$(MAKE) -C tools/gdb install prefix=$(prefix)
	install -D -m 644 include/uapi/linux/pvas.h $(DESTDIR)$(prefix)/include/linux/pvas.h

install-module: module
	install -D -m 644 $(MODDIR)/pvas.ko $(DESTDIR)/lib/modules/$(KVER)/updates/pvas.ko
	$(if $(DESTDIR),,depmod $(KVER))

clean:
	rm -rf $(BUILD)
