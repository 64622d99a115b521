# SPDX-License-Identifier: LGPL-2.1-or-later
# The tests that need no module. Included by ../Makefile.

tests	:= $(here)/tests
tout	:= $(out)/tests

# The kernel's own test harness, from Debian's source package; never copied in.
ktar	?= /usr/src/linux-source-6.12.tar.xz
kself	:= $(abspath $(O))/kselftest
kpath	:= linux-source-6.12/tools/testing/selftests

$(kself)/kselftest_harness.h:
	$(call say,EXTRACT)
	$(Q)mkdir -p $(kself) && t=$$(mktemp -d $(kself)/XXXXXX) && \
	tar -xJf $(ktar) -C $$t --strip-components=4 --occurrence=1 \
		$(kpath)/kselftest.h $(kpath)/kselftest_harness.h && \
	touch $$t/*.h && mv -f $$t/kselftest.h $$t/kselftest_harness.h $(kself)/ && rmdir $$t

$(tout):
	$(Q)mkdir -p $@

# ---- unit tests: linked with the archive, because the .so hides private functions ----

units	:= elf layout export program launch space user launcher peers strays callers departed strangers forks copies confined parks rights roots descriptors left sandbox segment hung hung_exec linger mapped outsiders fill flood queue shutdown ended execs leaving errors
# The harness defines functions without prototypes, and with unused parameters.
unit_flags := -std=gnu11 $(filter-out -Wmissing-prototypes,$(WARN)) -Wno-unused-parameter $(incs) -isystem $(kself) -D_GNU_SOURCE -pthread -MMD -MP

$(units:%=$(tout)/%): $(tout)/%: $(tests)/%.c $(out)/libpvas.a $(kself)/kselftest_harness.h | $(tout)
	$(call say,CC)
	$(Q)$(CC) $(unit_flags) $(CFLAGS) -o $@ $< $(more-$*) $(out)/libpvas.a

# The unit errors has more than one file.
more-errors := $(tests)/errors_setup.c $(tests)/errors_task.c
$(tout)/errors: $(more-errors) $(tests)/errors.h

# A launcher that is not PIE: its text and heap occupy the first place for the header.
$(tout)/launch-nopie: $(tests)/launch.c $(out)/libpvas.a $(kself)/kselftest_harness.h | $(tout)
	$(call say,CC)
	$(Q)$(CC) $(unit_flags) $(CFLAGS) -fno-pie -static -o $@ $< $(out)/libpvas.a

# ---- programs for the loader ----

prog	= $(Q)$(CC) -std=gnu11 -Wall -Wextra -D_GNU_SOURCE -I$(top)/include -I$(here) -O2 -g -pthread

$(tout)/run_loader: $(tests)/run_loader.c $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) $(WARN) $(incs) -o $@ $< $(out)/libpvas.a
$(tout)/task: $(tests)/task.c $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $< $(out)/libpvas.a
$(tout)/user_task: $(tests)/user_task.c $(tests)/user_task_memory.c $(tests)/user_task_plain.c \
		$(tests)/user_task.h \
		$(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) $(incs) -fPIE -pie -pthread -o $@ $(filter %.c %.a,$^)
$(tout)/peer_task: $(tests)/peer_task.c $(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -pthread -o $@ $< $(out)/libpvas.a
$(tout)/copies_task: $(tests)/copies_task.c $(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -pthread -o $@ $< $(out)/libpvas.a
$(tout)/hung_task: $(tests)/hung_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -pthread -o $@ $<
$(tout)/linger_task: $(tests)/linger_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) $(WARN) -fPIE -pie -o $@ $<
$(tout)/outsider_task: $(tests)/outsider_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) $(incs) -fPIE -pie -pthread -o $@ $<
$(tout)/fill_task: $(tests)/fill_task.c | $(tout)
	$(call say,CC)
	$(prog) $(WARN) -fPIE -pie -o $@ $<
$(tout)/stray_task: $(tests)/stray_task.c $(tests)/syscall_stub.h $(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -pthread -o $@ $< $(out)/libpvas.a
$(tout)/sandbox_task: $(tests)/sandbox_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $<
$(tout)/segment_task: $(tests)/segment_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $<
$(tout)/flood_task: $(tests)/flood_task.c $(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $< $(out)/libpvas.a
$(tout)/lock_task: $(tests)/lock_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -pthread -o $@ $<
$(tout)/orphan_task: $(tests)/orphan_task.c | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $<
$(tout)/exec_task: $(tests)/exec_task.c $(tests)/task_check.h $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $< $(out)/libpvas.a
$(tout)/rights_task: $(tests)/rights_task.c $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $<
$(tout)/roots_task: $(tests)/roots_task.c | $(tout)
	$(call say,CC)
	$(prog) -fPIE -static-pie -o $@ $<
$(tout)/far_task: $(tests)/far_task.c $(tests)/syscall_stub.h $(tests)/task_check.h | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $<
$(tout)/task-launcher: $(tests)/task_launcher.c $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $< $(out)/libpvas.a
$(tout)/task-static: $(tests)/task.c $(out)/libpvas.a | $(tout)
	$(call say,CC)
	$(prog) -DSTATIC -fPIE -static-pie -o $@ $< $(out)/libpvas.a
$(tout)/task-so: $(tests)/task.c $(out)/libpvas.so | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -o $@ $< -L$(out) -lpvas

shape-plain	:= -fPIE -pie
shape-static	:= -fPIE -static-pie
shape-align2m	:= -fPIE -pie -Wl,-z,max-page-size=0x200000 -DALIGN=0x200000
shape-align64k	:= -fPIE -static-pie -Wl,-z,max-page-size=0x10000 -Wl,-z,common-page-size=0x10000
shape-bigbss	:= -fPIE -pie -DBSS=0x30000000
shape-onetext	:= -fPIE -pie -Wl,-z,noseparate-code
shape-packed	:= -fPIE -pie -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--hash-style=sysv
shapes	:= plain static align2m align64k bigbss onetext packed

$(shapes:%=$(tout)/shape-%): $(tout)/shape-%: $(tests)/shape.c | $(tout)
	$(call say,CC)
	$(prog) $(shape-$*) -o $@ $<
# Does not begin at 0. ld marks it as ET_EXEC, although it has all that an ET_DYN needs.
$(tout)/shape-highbase: $(tests)/shape.c | $(tout)
	$(call say,CC)
	$(prog) -fPIE -pie -Wl,-Ttext-segment=0x10000000 -o $@ $<
	$(Q)printf '\003' | dd of=$@ bs=1 seek=16 conv=notrunc status=none
# Only gcc has nested functions.
$(tout)/shape-execstack: $(tests)/shape.c | $(tout)
	$(call say,CC)
	$(Q)gcc -std=gnu11 -O1 -DEXEC_STACK -fPIE -pie -Wl,-z,execstack -o $@ $<

test_progs := $(units:%=$(tout)/%) $(addprefix $(tout)/,launch-nopie run_loader task task-launcher user_task peer_task copies_task hung_task linger_task outsider_task fill_task stray_task sandbox_task segment_task flood_task lock_task orphan_task far_task exec_task rights_task roots_task task-static \
	task-so shape-execstack shape-highbase) $(shapes:%=$(tout)/shape-%)

tests: all $(test_progs)

check: tests fuzz-replay
	$(Q)$(tests)/run.sh $(tout) $(units) launch-nopie

include $(here)/fuzz/fuzz.mk

.PHONY: tests
