// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that misbehaves on request, so that test-run.sh can see whether
 * vm/run notices: echo ACTION > /sys/module/warnmod/parameters/action
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static DEFINE_SPINLOCK(lock_a);
static DEFINE_SPINLOCK(lock_b);

static void do_warn(void)
{
	WARN_ON(1);
}

static void do_oops(void)
{
	WRITE_ONCE(*(int *)8, 1);
}

static void do_panic(void)
{
	panic("warnmod was asked to");
}

/* A reference to the module that nobody gives back. */
static void do_leak_ref(void)
{
	__module_get(THIS_MODULE);
}

/* Only the debug kernel detects the following faults. */
static void do_leak_memory(void)
{
	void *p = kmalloc(1000, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
}

static void do_overflow(void)
{
	char *p = kmalloc(100, GFP_KERNEL);
	size_t past = 100;

	OPTIMIZER_HIDE_VAR(past);
	if (p)
		WRITE_ONCE(p[past], 1);
	kfree(p);
}

static void do_sleep(void)
{
	spin_lock(&lock_a);
	msleep(1);
	spin_unlock(&lock_a);
}

static void do_lock_order(void)
{
	spin_lock(&lock_a);
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	spin_unlock(&lock_a);

	spin_lock(&lock_b);
	spin_lock(&lock_a);
	spin_unlock(&lock_a);
	spin_unlock(&lock_b);
}

/* Adds an entry twice. */
static void do_list(void)
{
	LIST_HEAD(head);
	LIST_HEAD(entry);

	list_add(&entry, &head);
	list_add(&entry, &head);
}

/* The following actions are for the kernel that looks for races only. */
static int raced;
static char raced_text[32];

/* Long enough: KCSAN looks at one access in some thousand. */
#define RACE_TIME	(20 * HZ)

static void race_ours(void)
{
	raced++;
}

static void race_marked(void)
{
	WRITE_ONCE(raced, READ_ONCE(raced) + 1);
}

/* The plain accesses are those of a function of the kernel's. */
static void race_elsewhere(void)
{
	hex_dump_to_buffer("01234567", 8, 16, 1, raced_text, sizeof(raced_text), false);
}

static int race_with(void *data)
{
	void (*access)(void) = data;

	while (!kthread_should_stop()) {
		access();
		cond_resched();
	}
	return 0;
}

static void do_race_of(void (*access)(void))
{
	struct task_struct *other = kthread_run(race_with, access, "warnmod");
	unsigned long end = jiffies + RACE_TIME;

	if (IS_ERR(other))
		return;
	while (time_before(jiffies, end)) {
		access();
		cond_resched();
	}
	kthread_stop(other);
}

static void do_race(void)
{
	do_race_of(race_ours);
}

static void do_race_marked(void)
{
	do_race_of(race_marked);
}

static void do_race_elsewhere(void)
{
	do_race_of(race_elsewhere);
}

static const struct {
	const char *name;
	void (*act)(void);
} actions[] = {
	{ "warn", do_warn },
	{ "oops", do_oops },
	{ "panic", do_panic },
	{ "leak-ref", do_leak_ref },
	{ "leak-memory", do_leak_memory },
	{ "overflow", do_overflow },
	{ "sleep", do_sleep },
	{ "lock-order", do_lock_order },
	{ "list", do_list },
	{ "race", do_race },
	{ "race-marked", do_race_marked },
	{ "race-elsewhere", do_race_elsewhere },
};

static int set_action(const char *val, const struct kernel_param *kp)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(actions); i++) {
		if (sysfs_streq(val, actions[i].name)) {
			actions[i].act();
			return 0;
		}
	}
	return -EINVAL;
}

static const struct kernel_param_ops action_ops = {
	.set = set_action,
};
module_param_cb(action, &action_ops, NULL, 0200);

static int __init warnmod_init(void)
{
	return 0;
}

static void __exit warnmod_exit(void)
{
}

module_init(warnmod_init);
module_exit(warnmod_exit);
MODULE_DESCRIPTION("Misbehaves on request, to test vm/run");
MODULE_LICENSE("GPL");
