// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each user's share of the spaces: one user's spaces must not keep others from making
 * theirs.
 *
 * A space counts from CREATE until it is freed, wherever its files are, for its creator
 * and, as with ucounts, for the owners of the user namespaces around: a user who maps
 * 65536 ids into a namespace of their own still has one share.
 */
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "pvas.h"

static unsigned int pvas_max_spaces = 1024;
module_param_named(max_spaces, pvas_max_spaces, uint, 0644);
MODULE_PARM_DESC(max_spaces, "most spaces there can be at once (default 1024)");

static unsigned int pvas_max_spaces_per_user = 128;
module_param_named(max_spaces_per_user, pvas_max_spaces_per_user, uint, 0644);
MODULE_PARM_DESC(max_spaces_per_user,
		 "most spaces one user but root can have, and no more than a quarter of max_spaces (default 128)");

/* A quarter for each user, so that three users cannot have all of them. */
#define PVAS_SHARE_OF_ALL	4

struct pvas_user {
	struct list_head list;
	kuid_t uid;
	unsigned int spaces;
};

static LIST_HEAD(pvas_users);
/*
 * A spinlock, because the cgroup of a process that is preempted with a mutex can starve it,
 * and all others would wait.
 */
static DEFINE_SPINLOCK(pvas_users_lock);
static unsigned int pvas_n_spaces;

/*
 * Root sets the limits, so only the total applies to it. A root that could not set them
 * (in a container, or without capabilities) has a share like others.
 */
static unsigned int pvas_share_of(kuid_t uid, bool whole_root)
{
	unsigned int all = READ_ONCE(pvas_max_spaces);

	if (uid_eq(uid, GLOBAL_ROOT_UID) && whole_root)
		return all;
	return min(READ_ONCE(pvas_max_spaces_per_user), DIV_ROUND_UP(all, PVAS_SHARE_OF_ALL));
}

static struct pvas_user *pvas_user_find(kuid_t uid)
{
	struct pvas_user *user;

	list_for_each_entry(user, &pvas_users, list)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static void pvas_user_less(kuid_t uid)
{
	struct pvas_user *user = pvas_user_find(uid);

	if (--user->spaces)
		return;
	list_del(&user->list);
	kfree(user);
}

/* Allocates a count that a new user may need; unused ones are freed again. */
static int pvas_spare_add(struct list_head *spare)
{
	struct pvas_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return -ENOMEM;
	list_add(&user->list, spare);
	return 0;
}

static void pvas_spare_free(struct list_head *spare)
{
	struct pvas_user *user, *next;

	list_for_each_entry_safe(user, next, spare, list)
		kfree(user);
}

static int pvas_user_more(kuid_t uid, bool whole_root, struct list_head *spare)
{
	struct pvas_user *user = pvas_user_find(uid);

	if ((user ? user->spaces : 0) >= pvas_share_of(uid, whole_root))
		return -ENOSPC;
	if (!user) {
		user = list_first_entry(spare, struct pvas_user, list);
		user->uid = uid;
		list_move(&user->list, &pvas_users);
	}
	user->spaces++;
	return 0;
}

/* The next user to count a space for: the creator of the namespace that @uid is from. */
static const struct user_namespace *pvas_share_next(const struct user_namespace *ns, kuid_t *uid)
{
	kuid_t last = *uid;

	while (ns != &init_user_ns && uid_eq(*uid, last)) {
		*uid = ns->owner;
		ns = ns->parent;
	}
	return uid_eq(*uid, last) ? NULL : ns;
}

/* Undoes the count for the first @n users. */
static void pvas_share_undo(const struct cred *cred, int n)
{
	const struct user_namespace *ns = cred->user_ns;
	kuid_t uid = cred->uid;

	for (; ns && n; ns = pvas_share_next(ns, &uid), n--)
		pvas_user_less(uid);
}

static int pvas_share_do(const struct cred *cred, bool whole_root, struct list_head *spare)
{
	const struct user_namespace *ns = cred->user_ns;
	kuid_t uid = cred->uid;
	int err, n = 0;

	if (pvas_n_spaces >= READ_ONCE(pvas_max_spaces))
		return -ENOSPC;
	for (; ns; ns = pvas_share_next(ns, &uid), n++) {
		err = pvas_user_more(uid, whole_root, spare);
		if (err) {
			pvas_share_undo(cred, n);
			return err;
		}
	}
	pvas_n_spaces++;
	return 0;
}

/**
 * pvas_share_take - count one more space
 * @cred:	its creator's; the space holds a reference
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int pvas_share_take(const struct cred *cred)
{
	const struct user_namespace *ns = cred->user_ns;
	bool whole_root = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	kuid_t uid = cred->uid;
	LIST_HEAD(spare);
	int err = 0;

	for (; ns && !err; ns = pvas_share_next(ns, &uid))
		err = pvas_spare_add(&spare);
	if (!err) {
		spin_lock(&pvas_users_lock);
		err = pvas_share_do(cred, whole_root, &spare);
		spin_unlock(&pvas_users_lock);
	}
	pvas_spare_free(&spare);
	return err;
}

void pvas_share_give_back(const struct cred *cred)
{
	spin_lock(&pvas_users_lock);
	pvas_share_undo(cred, INT_MAX);
	pvas_n_spaces--;
	spin_unlock(&pvas_users_lock);
}
