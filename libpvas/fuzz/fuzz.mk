# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzing of the loader. Included by ../tests/tests.mk.
#
#   make -C libpvas fuzz [FUZZ_TIME=seconds]	needs clang; new inputs go to $(O)
#   make -C libpvas fuzz-merge			keep those that cover more
#   make -C libpvas fuzz-replay			the kept corpus, with any compiler
#
# The kept corpus is corpus.tar.xz; it is unpacked to $(O).

fdir	:= $(here)/fuzz
fout	:= $(out)/fuzz
fsrcs	:= $(fdir)/loader.c $(here)/loader/map.c
fdeps	:= $(fsrcs) $(here)/loader/map.h $(here)/loader/sys.h $(top)/kmod/pvas_elf.h
fflags	:= -std=gnu11 $(WARN) $(incs) -D_GNU_SOURCE -O2 -g -fno-omit-frame-pointer
FUZZ_TIME ?= 600

$(fout):
	$(Q)mkdir -p $@/found
# A new folder each time, so that inputs no longer in the archive are gone.
$(fout)/corpus/.unpacked: $(fdir)/corpus.tar.xz
	$(Q)rm -rf $(@D) && mkdir -p $(@D) && tar -C $(@D) -xJf $< && touch $@
$(fout)/fuzz: $(fdeps) | $(fout)
	$(call say,CC)
	$(Q)clang $(fflags) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ $(fsrcs)
$(fout)/replay: $(fdeps) | $(fout)
	$(call say,CC)
	$(Q)$(CC) $(fflags) -DREPLAY -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $(fsrcs)

fuzz: $(fout)/fuzz $(fout)/corpus/.unpacked
	cd $(fout) && nice -n 19 ./fuzz -max_total_time=$(FUZZ_TIME) -max_len=4096 \
		-print_final_stats=1 found corpus

# The same inputs make the same archive.
fuzz-merge: $(fout)/fuzz $(fout)/corpus/.unpacked
	cd $(fout) && rm -rf merged && mkdir merged && \
		./fuzz -merge=1 -max_len=4096 merged found corpus
	tar -C $(fout)/merged --sort=name --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w --mtime=@0 \
		-cJf $(fdir)/corpus.tar.xz .

fuzz-replay: $(fout)/replay $(fout)/corpus/.unpacked
	$(Q)$(fout)/replay $(fout)/corpus/*

.PHONY: fuzz fuzz-merge fuzz-replay
