// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each user's share of the spaces: one user's spaces must not keep others from making
 * theirs.
 *
 * A space counts from CREATE until it is freed, wherever its files are, for its creator
 * and, as with ucounts, for the owners of the user namespaces around: a user who maps
 * 65536 ids into a namespace of their own still has one share.
 *
 * Root owns the user namespaces of all containers that it has made, and one container's
 * spaces must not keep the others from making theirs. So each of these namespaces has a
 * share of its own. This gives nobody more than before: those who can give such a namespace
 * other ids than their own can also become the users with these ids.
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
		 "most spaces one user but root, or one container, can have, and no more than a quarter of max_spaces (default 128)");

/* A quarter for each user, so that three users cannot have all of them. */
#define PVAS_SHARE_OF_ALL	4

/**
 * struct pvas_payer - those for whom a space counts
 * @uid:	a user
 * @ns:		NULL, or a container of root's, which is then meant instead of its owner @uid.
 *		The credentials of each space that counts for it hold it
 */
struct pvas_payer {
	kuid_t uid;
	const struct user_namespace *ns;
};

struct pvas_user {
	struct list_head list;
	struct pvas_payer payer;
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
static unsigned int pvas_share_of(struct pvas_payer payer, bool whole_root)
{
	unsigned int all = READ_ONCE(pvas_max_spaces);

	if (uid_eq(payer.uid, GLOBAL_ROOT_UID) && whole_root)
		return all;
	return min(READ_ONCE(pvas_max_spaces_per_user), DIV_ROUND_UP(all, PVAS_SHARE_OF_ALL));
}

static bool pvas_payer_equal(struct pvas_payer a, struct pvas_payer b)
{
	return uid_eq(a.uid, b.uid) && a.ns == b.ns;
}

static struct pvas_user *pvas_user_find(struct pvas_payer payer)
{
	struct pvas_user *user;

	list_for_each_entry(user, &pvas_users, list)
		if (pvas_payer_equal(user->payer, payer))
			return user;
	return NULL;
}

static void pvas_user_less(struct pvas_payer payer)
{
	struct pvas_user *user = pvas_user_find(payer);

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

static int pvas_user_more(struct pvas_payer payer, bool whole_root, struct list_head *spare)
{
	struct pvas_user *user = pvas_user_find(payer);

	if ((user ? user->spaces : 0) >= pvas_share_of(payer, whole_root))
		return -ENOSPC;
	if (!user) {
		user = list_first_entry(spare, struct pvas_user, list);
		user->payer = payer;
		list_move(&user->list, &pvas_users);
	}
	user->spaces++;
	return 0;
}

/* The owner of @ns; or, of root's namespaces, that itself. */
static struct pvas_payer pvas_payer_of(const struct user_namespace *ns)
{
	bool container = ns->parent == &init_user_ns && uid_eq(ns->owner, GLOBAL_ROOT_UID);

	return (struct pvas_payer) { .uid = ns->owner, .ns = container ? ns : NULL };
}

/* The next one to count a space for: for the namespace that @payer is from. */
static const struct user_namespace *pvas_share_next(const struct user_namespace *ns,
						    struct pvas_payer *payer)
{
	struct pvas_payer last = *payer;

	while (ns != &init_user_ns && pvas_payer_equal(*payer, last)) {
		*payer = pvas_payer_of(ns);
		ns = ns->parent;
	}
	return pvas_payer_equal(*payer, last) ? NULL : ns;
}

/* Undoes the count for the first @n of them. */
static void pvas_share_undo(const struct cred *cred, int n)
{
	const struct user_namespace *ns = cred->user_ns;
	struct pvas_payer payer = { .uid = cred->uid };

	for (; ns && n; ns = pvas_share_next(ns, &payer), n--)
		pvas_user_less(payer);
}

static int pvas_share_do(const struct cred *cred, bool whole_root, struct list_head *spare)
{
	const struct user_namespace *ns = cred->user_ns;
	struct pvas_payer payer = { .uid = cred->uid };
	int err, n = 0;

	if (pvas_n_spaces >= READ_ONCE(pvas_max_spaces))
		return -ENOSPC;
	for (; ns; ns = pvas_share_next(ns, &payer), n++) {
		err = pvas_user_more(payer, whole_root, spare);
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
	struct pvas_payer payer = { .uid = cred->uid };
	LIST_HEAD(spare);
	int err = 0;

	for (; ns && !err; ns = pvas_share_next(ns, &payer))
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
