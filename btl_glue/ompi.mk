# SPDX-License-Identifier: LGPL-2.1-or-later
# How components of Open MPI are compiled, for btl_glue/ and coll_glue/.

CC	?= gcc
# mpicc can be another MPI's.
MPICC	?= mpicc.openmpi
CFLAGS	?= -O2 -g
ompi_inc := $(shell $(MPICC) --showme:incdirs)
ompi_lib := $(shell $(MPICC) --showme:libdirs)
# Where Open MPI finds its components
mcadir	?= $(shell ompi_info --path pkglibdir --parsable | sed 's/.*://')

# Open MPI's headers have unused parameters, and there are no warnings for system headers.
incs	:= $(foreach d,$(ompi_inc),-isystem $(d) -isystem $(d)/openmpi -isystem $(d)/openmpi/include) \
	   -I$(top)/include/uapi
# -mcx16: Open MPI's lists can use a 16-byte compare-and-swap. -flto: a message passes
# through three files, and function calls are a large part of its latency.
flags	:= -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wmissing-prototypes -fPIC -mcx16 \
	   -mprfchw -flto -fvisibility=hidden -fno-strict-aliasing $(incs) -I$(top)/include -MMD -MP

# Tests and benchmarks
tflags	:= -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -g

# nodelete: a program's signal handler may call ours, which it found, after MPI_Finalize.
link	:= -flto -shared -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now -Wl,-z,defs -Wl,-z,nodelete

Q	:= $(if $(V),,@)
say	= $(if $(V),,@printf '  %-7s %s\n' $(1) $(patsubst $(out)/%,%,$@))
