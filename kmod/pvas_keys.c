// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection keys (pkey_alloc(2)). The kernel has one set for an mm, and forgets it at an exec.
 * Here a key is freed with the partition of the task that has allocated it, if nobody has freed
 * it before.
 */
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/pkeys.h>

#include "pvas.h"
#include "pvas_hook.h"

#ifdef CONFIG_ARCH_HAS_PKEYS

/*
 * arch_set_user_pkey_access(), in pkey_alloc(), with mmap_lock for writing. Also for the key
 * that the kernel itself allocates for memory that is only executable, which mm_pkey_free()
 * never frees.
 */
void notrace pvas_on_key(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			 struct ftrace_regs *fregs)
{
	u32 key = PVAS_KEY_ARG(pvas_regs(fregs));
	struct pvas_partition *part = pvas_task_partition();

	if (part && key < PVAS_KEYS)
		part->space->key_owner[key] = part->gen;
}

/* Nobody adds to the keys of a partition that is being reclaimed. */
static bool pvas_keys_has_any(const struct pvas_partition *part)
{
	unsigned int key;

	for (key = 0; key < PVAS_KEYS; key++)
		if (READ_ONCE(part->space->key_owner[key]) == part->gen)
			return true;
	return false;
}

/* The memory of the partition is unmapped, and with it all that the keys protect. */
void pvas_keys_free(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	unsigned int key;

	if (!pvas_keys_has_any(part))
		return;
	pvas_lock_write(space);
	for (key = 0; key < PVAS_KEYS; key++) {
		if (space->key_owner[key] != part->gen)
			continue;
		space->key_owner[key] = 0;
		mm_pkey_free(space->mm, key);
	}
	mmap_write_unlock(space->mm);
}

#else

void notrace pvas_on_key(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			 struct ftrace_regs *fregs)
{
}

void pvas_keys_free(struct pvas_partition *part)
{
}

#endif
