// SPDX-License-Identifier: LGPL-2.1-or-later
/* libc's functions for the system calls that map, unmap and change memory */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/types.h>

#include "../../../include/linux_names.h"
#include "task.h"

#define ARGS(...)	((const uint64_t[6]){ __VA_ARGS__ })

static int64_t result(int64_t value)
{
	if (value >= 0 || value < -4095)
		return value;
	errno = (int)-value;
	return -1;
}

static void *pointer(int64_t value)
{
	return (void *)(intptr_t)result(value);
}

static void *map(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	uint64_t at = (uintptr_t)addr;

	/* The far part is the pager's: a hint is no reason to map anything else there. */
	if (!(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && task_has(at, len))
		at = 0;
	return pointer(task_call(__NR_mmap, ARGS(at, len, (uint64_t)prot, (uint64_t)flags,
						 (uint64_t)fd, (uint64_t)offset)));
}

TASK_PUBLIC void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map(addr, len, prot, flags, fd, offset);
}

TASK_PUBLIC void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map(addr, len, prot, flags, fd, offset);
}

TASK_PUBLIC int munmap(void *addr, size_t len)
{
	return (int)result(task_call(__NR_munmap, ARGS((uintptr_t)addr, len)));
}

TASK_PUBLIC void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
	uint64_t to = 0;
	va_list list;

	va_start(list, flags);
	if (flags & MREMAP_FIXED)
		to = (uintptr_t)va_arg(list, void *);
	va_end(list);
	return pointer(task_call(__NR_mremap,
				 ARGS((uintptr_t)addr, len, new_len, (uint64_t)flags, to)));
}

TASK_PUBLIC int madvise(void *addr, size_t len, int advice)
{
	return (int)result(task_call(__NR_madvise, ARGS((uintptr_t)addr, len, (uint64_t)advice)));
}

TASK_PUBLIC int mlock(const void *addr, size_t len)
{
	return (int)result(task_call(__NR_mlock, ARGS((uintptr_t)addr, len)));
}

TASK_PUBLIC int mlock2(const void *addr, size_t len, unsigned int flags)
{
	return (int)result(task_call(__NR_mlock2, ARGS((uintptr_t)addr, len, flags)));
}

TASK_PUBLIC void *shmat(int id, const void *addr, int flags)
{
	return pointer(task_call(__NR_shmat,
				 ARGS((uint64_t)id, (uintptr_t)addr, (uint64_t)flags)));
}
