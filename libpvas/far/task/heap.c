// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc() and those beside it: large blocks are mappings, which are far; all others are the
 * next library's. A far block begins with the address and length of its mapping.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "task.h"

enum { ALIGN = 64, KERNEL_PAGE = 4096 };

/** struct block - just before the program's address */
struct block {
	char *map;
	size_t len;
};

/* The next library's function, looked up once */
#define NEXT(name)	((__typeof__(&name))next(&names[AT_##name]))

enum { AT_malloc, AT_free, AT_calloc, AT_realloc, AT_memalign, AT_malloc_usable_size };
static struct name {
	const char *name;
	void *function;
} names[] = {
	[AT_malloc] = { "malloc", NULL }, [AT_free] = { "free", NULL },
	[AT_calloc] = { "calloc", NULL }, [AT_realloc] = { "realloc", NULL },
	[AT_memalign] = { "memalign", NULL },
	[AT_malloc_usable_size] = { "malloc_usable_size", NULL },
};

static void *next(struct name *n)
{
	void *f = __atomic_load_n(&n->function, __ATOMIC_RELAXED);

	if (f)
		return f;
	f = dlsym(RTLD_NEXT, n->name);
	__atomic_store_n(&n->function, f, __ATOMIC_RELAXED);
	return f;
}

static void *fail(int err)
{
	errno = err;
	return NULL;
}

static struct block *block_of(void *p)
{
	return (struct block *)p - 1;
}

static size_t size_of(void *p)
{
	const struct block *b = block_of(p);

	return (size_t)(b->map + b->len - (char *)p);
}

static bool is_far(const void *p)
{
	return task_has((uintptr_t)p, 1);
}

static void *allocate(size_t size, size_t align)
{
	size_t len = size + align + sizeof(struct block);
	char *map, *p;

	if (len < size || size > PTRDIFF_MAX)
		return fail(ENOMEM);
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	p = map + sizeof(struct block);
	p += -(uintptr_t)p & (align - 1);
	*block_of(p) = (struct block){ map, len };
	return p;
}

/* A fork child has it no more. */
static void release(void *p)
{
	const struct block b = task_pages() ? *block_of(p) : (struct block){ NULL, 0 };

	if (b.map)
		munmap(b.map, b.len);
}

static void *resize(void *p, size_t size)
{
	struct block *b = block_of(p);
	size_t lead = (size_t)((char *)p - b->map);
	char *map;

	if (size + lead < size)
		return fail(ENOMEM);
	map = mremap(b->map, b->len, size + lead, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return NULL;
	p = map + lead;
	*block_of(p) = (struct block){ map, size + lead };
	return p;
}

/* From far to local memory, or back */
static void *copy(void *p, size_t old, size_t size)
{
	void *to = malloc(size);

	if (!to)
		return NULL;
	memcpy(to, p, old < size ? old : size);
	free(p);
	return to;
}

TASK_PUBLIC void *malloc(size_t size)
{
	return task_is_far(size) ? allocate(size, ALIGN) : NEXT(malloc)(size);
}

TASK_PUBLIC void free(void *p)
{
	int saved = errno;

	if (is_far(p))
		release(p);
	else
		NEXT(free)(p);
	errno = saved;
}

TASK_PUBLIC void *calloc(size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all))
		return fail(ENOMEM);
	return task_is_far(all) ? allocate(all, ALIGN) : NEXT(calloc)(count, size);
}

TASK_PUBLIC void *realloc(void *p, size_t size)
{
	if (!p)
		return malloc(size);
	if (!is_far(p))
		return task_is_far(size) ? copy(p, NEXT(malloc_usable_size)(p), size) :
					   NEXT(realloc)(p, size);
	if (!size) {
		free(p);
		return NULL;
	}
	return task_is_far(size) ? resize(p, size) : copy(p, size_of(p), size);
}

TASK_PUBLIC void *reallocarray(void *p, size_t count, size_t size)
{
	size_t all;

	return __builtin_mul_overflow(count, size, &all) ? fail(ENOMEM) : realloc(p, all);
}

TASK_PUBLIC void *memalign(size_t align, size_t size)
{
	size_t power = ALIGN;

	if (!task_is_far(size))
		return NEXT(memalign)(align, size);
	while (power < align && power <= SIZE_MAX / 4)
		power *= 2;
	return power < align ? fail(EINVAL) : allocate(size, power);
}

TASK_PUBLIC void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

TASK_PUBLIC int posix_memalign(void **p, size_t align, size_t size)
{
	int saved = errno;
	void *q;

	if (align % sizeof(void *) || !align || align & (align - 1))
		return EINVAL;
	q = memalign(align, size);
	errno = saved;
	if (!q)
		return ENOMEM;
	*p = q;
	return 0;
}

TASK_PUBLIC void *valloc(size_t size)
{
	return memalign(KERNEL_PAGE, size);
}

TASK_PUBLIC void *pvalloc(size_t size)
{
	size_t up = (size + KERNEL_PAGE - 1) & ~(size_t)(KERNEL_PAGE - 1);

	return up < size ? fail(ENOMEM) : memalign(KERNEL_PAGE, up);
}

TASK_PUBLIC size_t malloc_usable_size(void *p)
{
	return is_far(p) ? size_of(p) : NEXT(malloc_usable_size)(p);
}
