# SPDX-License-Identifier: LGPL-2.1-or-later
# How components of Open MPI are compiled. Each sets
# `series` first: a pattern of the versions that it is for.

CC	?= gcc
# mpicc can be another MPI's.
MPICC	?= mpicc.openmpi
CFLAGS	?= -O2 -g
ompi_inc := $(shell $(MPICC) --showme:incdirs)
ompi_lib := $(shell $(MPICC) --showme:libdirs)
ompi_version := $(shell $(MPICC) --showme:version 2>/dev/null | sed 's/.*Open MPI \([0-9.]*\).*/\1/')
ifeq ($(filter clean,$(MAKECMDGOALS))$(filter $(series),$(ompi_version)),)
$(error $(notdir $(here)): for Open MPI $(series), and $(MPICC) is of $(ompi_version))
endif
# Where Open MPI finds its components
mcadir	?= $(shell ompi_info --path pkglibdir --parsable | sed 's/.*://')

# Open MPI's headers have unused parameters, and there are no warnings for system headers.
incs	:= $(foreach d,$(ompi_inc),-isystem $(d) -isystem $(d)/openmpi -isystem $(d)/openmpi/include) \
	   -I$(top)/include/uapi
# After 4.1, libopenmpi-dev lacks some headers that others include, which are in shim/, and
# PMIx is a package of its own.
ifeq ($(filter 4.%,$(ompi_version)),)
incs	+= -idirafter $(top)/btl_glue/shim $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I pmix))
pmix	:= $(shell pkg-config --libs-only-L --libs-only-l pmix)
endif

# -mcx16: Open MPI's lists can use a 16-byte compare-and-swap. -flto: a message passes
# through three files, and function calls are a large part of its latency.
flags	:= -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wmissing-prototypes -fPIC -mcx16 \
	   -mprfchw -flto -fvisibility=hidden -fno-strict-aliasing $(incs) -I$(top)/include -MMD -MP

# Tests and benchmarks
tflags	:= -pthread -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g

# nodelete: a program's signal handler may call ours, which it found, after MPI_Finalize.
link	:= -flto -shared -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now -Wl,-z,defs -Wl,-z,nodelete -pthread

Q	:= $(if $(V),,@)
say	= $(if $(V),,@printf '  %-7s %s\n' $(1) $(patsubst $(out)/%,%,$@))

# The components share files of btl_glue/.
$(out)/%.o: $(here)/%.c | $(out)
	$(call say,CC)
	$(Q)$(CC) $(flags) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(out)/%.o: $(top)/btl_glue/%.c | $(out)
	$(call say,CC)
	$(Q)$(CC) $(flags) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
