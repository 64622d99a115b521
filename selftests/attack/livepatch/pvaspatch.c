// SPDX-License-Identifier: GPL-2.0-only
/*
 * A live patch of one of the functions that pvas.ko hooks: a system call that
 * nobody misses, so that whoever makes it sees whether the patch is active.
 */
#include <linux/errno.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/ptrace.h>

static asmlinkage long pvaspatch_home_node(const struct pt_regs *regs)
{
	return -EXFULL;
}

static struct klp_func funcs[] = {
	{
		.old_name = "__x64_sys_set_mempolicy_home_node",
		.new_func = pvaspatch_home_node,
	},
	{ }
};

static struct klp_object objs[] = {
	{ .funcs = funcs },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objs,
};

static int __init pvaspatch_init(void)
{
	return klp_enable_patch(&patch);
}

/* Only after it was disabled: until then it holds itself. */
static void __exit pvaspatch_exit(void)
{
}

module_init(pvaspatch_init);
module_exit(pvaspatch_exit);
MODULE_DESCRIPTION("Patches a function that pvas.ko hooks");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
