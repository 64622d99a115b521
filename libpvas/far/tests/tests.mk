# SPDX-License-Identifier: LGPL-2.1-or-later
# The tests of far memory. Included by ../Makefile.

tests	:= $(here)/tests
tout	:= $(out)/tests
kself	:= $(abspath $(O))/kselftest

units	:= api evict faults in_use job_pager pager programs protocols rings store
# The harness defines functions without prototypes, and with unused parameters.
unit_flags := -std=gnu11 $(filter-out -Wmissing-prototypes,$(WARN)) -Wno-unused-parameter \
	-I$(here) -I$(top)/include -I$(top)/libpvas/tests -isystem $(kself) -D_GNU_SOURCE -pthread

# The kernel's test harness: libpvas/tests/tests.mk extracts it.
$(kself)/kselftest_harness.h:
	$(Q)$(MAKE) -s -C $(top)/libpvas $@

$(units:%=$(tout)/%): $(tout)/%: $(tests)/%.c $(tests)/no_move.c $(out)/libpvasfar.a $(kself)/kselftest_harness.h | $(tout)
	$(call say,CC)
	$(Q)$(CC) $(unit_flags) $(deps) $(CFLAGS) -Wl,--wrap=ioctl -o $(new) $< $(tests)/no_move.c $(out)/libpvasfar.a $(libs) $(keep_deps) $(keep)

# As printed it does not compile with -fopenmp: it returns out of a parallel loop. 64 MiB here.
$(tout)/figure3: $(tests)/data/figure3.c $(here)/dlm.h $(out)/libpvasfar.so | $(tout)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -w -O2 -I$(here) '-DENUM=(1UL<<23)' -o $(new) $< -L$(out) -Wl,-rpath,$(out) -lpvasfar $(keep)
$(tout)/figure3.ok: $(tout)/figure3
	$(Q)PVAS_FAR=zip PVAS_FAR_RAM=16M PVAS_FAR_PAGE=64K timeout 60 $<
	$(Q)! PVAS_FAR=zip PVAS_FAR_RAM=1K $< 2>$@
	$(Q)grep -q '^dlm_startup: a budget of 1024 bytes is too small' $@

# A task of a job with far memory: an ordinary program, but for the test of peers
job_srcs := $(wildcard $(tests)/job/*.c)
$(tout)/task: $(job_srcs) $(tests)/job/job.h $(abspath $(O))/libpvas/libpvas.a | $(tout)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 $(WARN) -D_GNU_SOURCE -pthread -I$(top)/libpvas -I$(top)/include/uapi $(CFLAGS) \
		-o $(new) $(job_srcs) $(abspath $(O))/libpvas/libpvas.a $(keep)

# Programs of the DLM paper
fftw	:= $(shell $(PKG_CONFIG) --exists fftw3 && echo $(tout)/fft)
$(tout)/kernels: $(tests)/programs/kernels.c | $(tout)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -fopenmp -o $(new) $< $(keep)
$(tout)/fft: $(tests)/programs/fft.c | $(tout)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -o $(new) $< -lfftw3_threads -lfftw3 -lm -pthread $(keep)
$(tout)/storage: $(tests)/programs/storage.c | $(tout)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -pthread -o $(new) $< $(keep)

tests: all $(units:%=$(tout)/%) $(tout)/figure3
check: tests $(tout)/figure3.ok
	$(Q)$(tests)/run.sh $(tout) $(units)

# Needs libpvas and pvasrun
check-job: all $(tout)/task $(tout)/storage $(tout)/kernels $(fftw)
	$(Q)O=$(abspath $(O)) $(tests)/job/run.sh
	$(Q)O=$(abspath $(O)) $(tests)/programs/run.sh --short
check-programs: tests $(tout)/task $(tout)/kernels $(fftw)
	$(Q)O=$(abspath $(O)) $(tests)/programs/run.sh
	$(Q)MORE=10 $(tout)/pager -t no_store_is_lost
.PHONY: check-job check-programs
