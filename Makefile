# SPDX-License-Identifier: GPL-2.0-only
# The targets to type. The build of the module itself is in Kbuild.
#
#   make demo		set up, boot a virtual machine, run 240 tasks in one address space
#   make check		set up, and run all tests on both kernels
#   make		build all for this machine's kernel (KVER=... for another)
#   make bench		all measurements, beside rivals: bench/all (bench-quick: shorter)
#   make distcheck	does a tarball (make dist) build and pass its tests?
#   make install	system/install.mk; packages: make deb, make rpm; see doc/install.md

KVER	?= $(shell uname -r)
KDIR	?= /lib/modules/$(KVER)/build
BUILD	:= $(CURDIR)/build
MODDIR	:= $(BUILD)/$(KVER)
# The kernels that the virtual machine boots
KERNELS	:= 6.1 6.12
KERNEL	?= 6.12
N	?= 240
# The compiler's extra warnings, for us; dkms.conf does without.
W	?= 1
prefix	?= /usr/local
# Packages may put the built tree elsewhere: each part knows O.
export O := $(BUILD)

user	:= libpvas far pvasrun examples tools scale

.PHONY: all module module-all $(user) btl_glue coll_glue osc_glue pml_glue smsc_glue openmpi python deps demo check style check-debug \
	check-mpi check-packages check-matrix check-pythons check-vm attack bench bench-quick dist distcheck deb rpm clean

all: module $(user)

# The kernel writes objects beside the sources: build a copy, one a kernel.
module:
	@[ -d $(KDIR) ] || { echo "make: no headers for Linux $(KVER) in $(KDIR)" \
		"(install linux-headers-$(KVER), or name another: KVER=...)" >&2; exit 1; }
	@mkdir -p $(MODDIR)/src
	@cp -ru Kbuild kmod include $(MODDIR)/src/
	@flock $(MODDIR) $(MAKE) -s -C $(KDIR) M=$(MODDIR)/src W=$(W) $(MODFLAGS) modules
	@cp -u $(MODDIR)/src/pvas.ko $(MODDIR)/pvas.ko

module-all:
	@for k in $(KERNELS); do \
		r=$$(scripts/kernel-release $$k) && $(MAKE) -s module KVER=$$r && \
		echo "pvas.ko for $$r" || exit 1; \
	done

libpvas:
	@$(MAKE) -s -C libpvas
far:
	@$(MAKE) -s -C libpvas/far
pvasrun examples btl_glue coll_glue osc_glue pml_glue smsc_glue python: libpvas
	@$(MAKE) -s -C $@
# The components for the Open MPI that is installed
openmpi: libpvas
	@parts=$$(scripts/openmpi-parts) && for part in $$parts; do $(MAKE) -s -C $$part || exit 1; done
tools:
	@$(MAKE) -s -C tools/ps
	@$(MAKE) -s -C tools/gdb
	@$(MAKE) -s -C tools/memd
scale:
	@$(MAKE) -s -C scale

deps:
	@scripts/install-deps

demo: deps
	@$(MAKE) -s libpvas pvasrun examples
	@selftests/vm/run --kernel $(KERNEL) --keep-env O -- examples/demo $(N)

check: deps
	@scripts/check

style:
	@scripts/check-style
	@scripts/check-duplicates
	@scripts/check-licences

dist:
	@scripts/distcheck --dist
distcheck: deps
	@scripts/distcheck

check-debug: deps
	@CHECK_STAGES=scripts/check-debug.stages scripts/check

attack: deps
	@$(MAKE) -s module-all libpvas pvasrun
	@$(MAKE) -s -C selftests attack
	@scripts/attack

check-vm: deps
	@CHECK_STAGES=scripts/check-vm.stages scripts/check

check-mpi:
	@scripts/install-deps --mpi
	@CHECK_STAGES=scripts/check-mpi.stages scripts/check

check-far-programs: deps
	@$(MAKE) -s libpvas far pvasrun tools btl_glue
	@$(MAKE) -s -C libpvas/far check-programs

check-packages: deps
	@CHECK_STAGES=scripts/check-packages.stages scripts/check

check-matrix:
	@scripts/check-matrix
# Python's part of it
check-pythons:
	@scripts/check-matrix bullseye-python trixie-python sid-python

deb:
	@scripts/make-deb
rpm:
	@scripts/make-rpm

bench: deps
	@bench/all
bench-quick: deps
	@bench/all --quick

clean:
	rm -rf $(BUILD)

include system/install.mk
