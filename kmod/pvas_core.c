// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/pvas: the ioctls, and the module's beginning and end.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pvas.h"
#include "pvas_refs.h"

static ushort pvas_mode = 0666;
module_param_named(mode, pvas_mode, ushort, 0444);
MODULE_PARM_DESC(mode, "permissions of /dev/pvas until udev changes them (default 0666)");

/**
 * struct pvas_file - an open file of /dev/pvas
 * @lock:	one CREATE, DESTROY or look at @space at a time
 * @space:	the space bound to it, with a reference, or NULL
 */
struct pvas_file {
	struct mutex lock;
	struct pvas_space *space;
};

union pvas_args {
	struct pvas_info info;
	struct pvas_create create;
	struct pvas_spawn spawn;
	struct pvas_destroy destroy;
	struct pvas_query query;
	struct pvas_attach attach;
	struct pvas_refs refs;
};

static struct pvas_space *pvas_file_space(struct pvas_file *pf)
{
	struct pvas_space *space;

	mutex_lock(&pf->lock);
	space = pf->space ? pvas_space_get(pf->space) : NULL;
	mutex_unlock(&pf->lock);
	return space;
}

static int pvas_ioctl_info(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_info *arg = &args->info;

	if (arg->flags || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	arg->abi_major = PVAS_ABI_MAJOR;
	arg->abi_minor = PVAS_ABI_MINOR;
	arg->features = PVAS_FEATURE_TASK_EXE | PVAS_FEATURE_EXEC_STAYS | PVAS_FEATURE_REFS;
	if (IS_ENABLED(CONFIG_IA32_EMULATION))
		arg->features |= PVAS_FEATURE_IA32;
	arg->shift_min = PVAS_SHIFT_MIN;
	arg->shift_max = PVAS_SHIFT_MAX;
	arg->max_tasks = PVAS_MAX_TASKS;
	arg->spaces = pvas_space_count(current_user_ns());
	return 0;
}

static int pvas_copy_key(char *key, u64 user, u32 len)
{
	if (!len || len > PVAS_KEY_MAX)
		return -EINVAL;
	return copy_from_user(key, u64_to_user_ptr(user), len) ? -EFAULT : 0;
}

static int pvas_ioctl_create(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_create *arg = &args->create;
	char key[PVAS_KEY_MAX];
	int err = 0;

	if ((arg->flags & ~PVAS_CREATE_F_ALL) ||
	    memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	if (arg->flags & PVAS_CREATE_KEY)
		err = pvas_copy_key(key, arg->key, arg->key_len);
	else if (arg->key || arg->key_len)
		err = -EINVAL;
	if (err)
		return err;
	if (pvas_task_partition())
		return -EBUSY;

	if (mutex_lock_interruptible(&pf->lock))
		return -EINTR;
	err = pf->space ? -EBUSY : pvas_space_create(&pf->space, arg, key);
	if (!err)
		pvas_dump_adopt();
	mutex_unlock(&pf->lock);
	return err;
}

static int pvas_ioctl_attach(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_attach *arg = &args->attach;
	char key[PVAS_KEY_MAX];
	int err;

	if (arg->flags || arg->reserved0 || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	err = pvas_copy_key(key, arg->key, arg->key_len);
	if (err)
		return err;

	if (mutex_lock_interruptible(&pf->lock))
		return -EINTR;
	if (pf->space) {
		err = -EBUSY;
	} else {
		pf->space = pvas_space_attach(key, arg->key_len);
		err = pf->space ? 0 : -ENOENT;
	}
	if (!err) {
		arg->id = pf->space->id;
		arg->shift = pf->space->shift;
		arg->first = pf->space->first;
		arg->last = pf->space->last;
	}
	mutex_unlock(&pf->lock);
	return err;
}

/*
 * The id of a space is not enough: the right to enter comes from a file that CREATE or
 * ATTACH has bound, or from being in the space already. So a sandboxed process cannot
 * reach other jobs of its user.
 */
static bool pvas_has_space(struct pvas_file *pf, struct pvas_space *space)
{
	struct pvas_partition *part = pvas_task_partition();
	bool bound;

	mutex_lock(&pf->lock);
	bound = pf->space == space;
	mutex_unlock(&pf->lock);
	return bound || (part && part->space == space);
}

static int pvas_ioctl_spawn(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_spawn *arg = &args->spawn;
	struct pvas_space *space;
	int err;

	if ((arg->flags & ~PVAS_SPAWN_F_ALL) || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	if ((arg->flags && arg->index) || in_ia32_syscall())
		return -EINVAL;
	if (arg->flags & PVAS_SPAWN_CANCEL)
		return arg->id || arg->flags != PVAS_SPAWN_CANCEL ? -EINVAL : pvas_task_disarm();

	space = arg->id ? pvas_space_find(arg->id) : pvas_file_space(pf);
	if (!space)
		return -ENOENT;
	err = -EPERM;
	if (!pvas_space_may_enter(space, current_cred()))
		goto out;
	err = -ENOENT;
	if (!pvas_space_is_open(space))
		goto out;
	err = -EPERM;
	if (!pvas_has_space(pf, space) || !pvas_space_is_dumpable(space))
		goto out;
	arg->id = space->id;
	err = pvas_task_arm(space, &arg->index, arg->flags & PVAS_SPAWN_ANY);
out:
	pvas_space_put(space);
	return err;
}

static bool pvas_space_is_idle(struct pvas_space *space)
{
	bool idle;

	spin_lock(&space->lock);
	idle = !space->in_use;
	spin_unlock(&space->lock);
	return idle;
}

static int pvas_ioctl_destroy(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_destroy *arg = &args->destroy;
	struct pvas_space *space = NULL;
	int err = 0;

	if ((arg->flags & ~PVAS_DESTROY_F_ALL) ||
	    memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;

	if (mutex_lock_interruptible(&pf->lock))
		return -EINTR;
	if (!pf->space)
		err = -ENOENT;
	else if (!(arg->flags & PVAS_DESTROY_KILL) && !pvas_space_is_idle(pf->space))
		err = -EBUSY;
	else if ((arg->flags & PVAS_DESTROY_KILL) && !pvas_space_may_kill(pf->space))
		err = -EPERM;
	else
		swap(space, pf->space);
	mutex_unlock(&pf->lock);
	if (!space)
		return err;
	if (arg->flags & PVAS_DESTROY_KILL)
		pvas_space_kill(space);
	/* Idle or not, no process can enter it by its id any more. */
	pvas_space_unbind(space);
	return 0;
}

static void pvas_describe(const struct pvas_partition *part, struct pvas_task *task)
{
	task->index = part->index;
	task->state = part->state;
	task->pid = pid_vnr(part->pid);
	task->users = part->members;
	task->gen = part->gen;
	task->load = part->layout.load;
	task->heap = part->layout.heap;
	task->brk = READ_ONCE(part->brk);
}

/* Returns how many there are; describes the first @room of them. */
static u32 pvas_list_tasks(struct pvas_space *space, struct pvas_task *tasks, u32 room)
{
	u32 i, n = 0;

	spin_lock(&space->lock);
	for (i = space->first; i <= space->last; i++) {
		if (!space->parts[i])
			continue;
		if (n < room)
			pvas_describe(space->parts[i], &tasks[n]);
		n++;
	}
	spin_unlock(&space->lock);
	return n;
}

static int pvas_query_tasks(struct pvas_space *space, struct pvas_query *arg)
{
	u32 room = min_t(u32, arg->count, PVAS_MAX_TASKS);
	struct pvas_task *tasks = NULL;
	int err = 0;

	if (room) {
		tasks = kvcalloc(room, sizeof(*tasks), GFP_KERNEL_ACCOUNT);
		if (!tasks)
			return -ENOMEM;
	}
	arg->count = pvas_list_tasks(space, tasks, room);
	if (copy_to_user(u64_to_user_ptr(arg->tasks), tasks,
			 sizeof(*tasks) * min(room, arg->count)))
		err = -EFAULT;
	kvfree(tasks);
	return err;
}

/* The space that QUERY is about: by id, or the file's, or the caller's. */
static struct pvas_space *pvas_query_space(struct pvas_file *pf, u32 id)
{
	struct pvas_partition *part;
	struct pvas_space *space;

	if (id)
		return pvas_space_find(id) ?: ERR_PTR(-ENOENT);
	space = pvas_file_space(pf);
	if (space)
		return space;
	part = pvas_task_partition();
	return part ? pvas_space_get(part->space) : ERR_PTR(-ESRCH);
}

static int pvas_ioctl_query(struct pvas_file *pf, union pvas_args *args)
{
	struct pvas_query *arg = &args->query;
	struct pvas_partition *part;
	struct pvas_space *space;
	int err;

	if (arg->flags || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	space = pvas_query_space(pf, arg->id);
	if (IS_ERR(space))
		return PTR_ERR(space);
	err = -EPERM;
	if (!pvas_space_may_look(space, NULL))
		goto out;
	/* A file that was bound to it came from a process that could. */
	if (!pvas_has_space(pf, space) && !pvas_space_may_see_tasks(space, NULL))
		goto out;
	arg->id = space->id;
	arg->shift = space->shift;
	arg->first = space->first;
	arg->last = space->last;
	part = pvas_task_partition();
	arg->self = part && part->space == space ? part->index : 0;
	err = pvas_query_tasks(space, arg);
out:
	pvas_space_put(space);
	return err;
}

static int pvas_ioctl_refs(struct pvas_file *pf, union pvas_args *args)
{
	return pvas_refs_clear(&args->refs);
}

/* The results did not reach the caller, which must not be armed without knowing it. */
static void pvas_undo_spawn(union pvas_args *args)
{
	if (!(args->spawn.flags & PVAS_SPAWN_CANCEL))
		pvas_task_disarm();
}

/**
 * struct pvas_command - an ioctl
 * @size:	of its struct, as first published
 * @run:	checks the members except the size, does the work, fills in the results
 * @undo:	called if the results cannot be written; CREATE needs none, because the file
 *		owns the space
 */
struct pvas_command {
	size_t size;
	int (*run)(struct pvas_file *pf, union pvas_args *args);
	void (*undo)(union pvas_args *args);
};

static const struct pvas_command pvas_commands[] = {
	[_IOC_NR(PVAS_IOC_INFO)]	= { sizeof(struct pvas_info), pvas_ioctl_info },
	[_IOC_NR(PVAS_IOC_CREATE)]	= { sizeof(struct pvas_create), pvas_ioctl_create },
	[_IOC_NR(PVAS_IOC_SPAWN)]	= { sizeof(struct pvas_spawn), pvas_ioctl_spawn,
					    pvas_undo_spawn },
	[_IOC_NR(PVAS_IOC_DESTROY)]	= { sizeof(struct pvas_destroy), pvas_ioctl_destroy },
	[_IOC_NR(PVAS_IOC_QUERY)]	= { sizeof(struct pvas_query), pvas_ioctl_query },
	[_IOC_NR(PVAS_IOC_ATTACH)]	= { sizeof(struct pvas_attach), pvas_ioctl_attach },
	[_IOC_NR(PVAS_IOC_REFS)]	= { sizeof(struct pvas_refs), pvas_ioctl_refs },
};

/*
 * The number alone selects the command: the rest of @cmd has the size of the struct,
 * which may grow. The size that the caller knows is the first member.
 */
static long pvas_ioctl(struct file *file, unsigned int cmd, unsigned long user_arg)
{
	void __user *user = (void __user *)user_arg;
	const struct pvas_command *command;
	union pvas_args args;
	u32 size;
	int err;

	if (_IOC_TYPE(cmd) != PVAS_IOC_MAGIC || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) ||
	    _IOC_NR(cmd) >= ARRAY_SIZE(pvas_commands))
		return -ENOTTY;
	command = &pvas_commands[array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(pvas_commands))];

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < command->size || size > PAGE_SIZE)
		return -EINVAL;
	err = copy_struct_from_user(&args, command->size, user, size);
	if (err)
		return err;
	err = command->run(file->private_data, &args);
	if (!err && copy_to_user(user, &args, command->size)) {
		err = -EFAULT;
		if (command->undo)
			command->undo(&args);
	}
	return err;
}

static int pvas_open(struct inode *inode, struct file *file)
{
	struct pvas_file *pf = kzalloc(sizeof(*pf), GFP_KERNEL_ACCOUNT);

	if (!pf)
		return -ENOMEM;
	mutex_init(&pf->lock);
	file->private_data = pf;
	return 0;
}

static int pvas_release(struct inode *inode, struct file *file)
{
	struct pvas_file *pf = file->private_data;

	if (pf->space)
		pvas_space_unbind(pf->space);
	kfree(pf);
	return 0;
}

static const struct file_operations pvas_fops = {
	.owner		= THIS_MODULE,
	.open		= pvas_open,
	.release	= pvas_release,
	.unlocked_ioctl	= pvas_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice pvas_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pvas",
	.fops	= &pvas_fops,
};

static void pvas_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct pvas_info) != 64);
	BUILD_BUG_ON(sizeof(struct pvas_create) != 80);
	BUILD_BUG_ON(sizeof(struct pvas_spawn) != 48);
	BUILD_BUG_ON(sizeof(struct pvas_destroy) != 24);
	BUILD_BUG_ON(sizeof(struct pvas_task) != 48);
	BUILD_BUG_ON(sizeof(struct pvas_query) != 72);
	BUILD_BUG_ON(sizeof(struct pvas_part) != 64);
	BUILD_BUG_ON(sizeof(struct pvas_start) != 72);
	BUILD_BUG_ON(sizeof(struct pvas_attach) != 56);
}

static int __init pvas_init(void)
{
	int err;

	pvas_check_abi();
	err = pvas_free_init();
	if (err)
		return err;
	err = pvas_hook_init();
	if (err)
		goto err_free;
	err = pvas_exec_init();
	if (err)
		goto err_hook;
	err = pvas_proc_init();
	if (err)
		goto err_exec;
	pvas_misc.mode = pvas_mode & 0777;
	err = misc_register(&pvas_misc);
	if (err)
		goto err_proc;
	return 0;

err_proc:
	pvas_proc_exit();
err_exec:
	pvas_exec_exit();
err_hook:
	pvas_hook_exit();
err_free:
	pvas_free_exit();
	return err;
}

/*
 * No space exists, because each holds the module. Functions that have dropped the last
 * reference to it may still run: work items, which destroy_workqueue() waits for; RCU
 * callbacks; and tasks preempted in a redirected call or in task work, for which
 * synchronize_rcu_tasks() waits.
 */
static void __exit pvas_exit(void)
{
	misc_deregister(&pvas_misc);
	pvas_proc_exit();
	pvas_exec_exit();
	pvas_free_exit();
	pvas_hook_exit();
	synchronize_rcu_tasks();
	rcu_barrier();
}

module_init(pvas_init);
module_exit(pvas_exit);

MODULE_DESCRIPTION("Partitioned Virtual Address Space: processes of a job in one mm");
MODULE_AUTHOR("The PVAS authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
