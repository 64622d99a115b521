// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each user's share of the spaces: one user's spaces must not keep others from making
 * theirs.
 *
 * A space counts from CREATE until it is freed, wherever its files are, for its creator
 * and, as with ucounts, for the owners of the user namespaces around: a user who maps
 * 65536 ids into a namespace of their own still has one share. Such ids can also be had
 * outside of it, by set-uid files: so a space counts for the login, too. But a daemon that an
 * administrator has started, and the jobs of several users under it, have the administrator's
 * login. So the share of a login is twice a user's: none of them can have all of it. It does
 * not count for the user who has logged in, since a process without a login can choose any.
 *
 * Root owns the user namespaces of all containers that it has made, and one container's
 * spaces must not keep the others from making theirs. So each of these namespaces has a
 * share of its own, and so has each user in it, since containers often have the same ids.
 * This gives nobody more than before: those who can give such a namespace other ids than
 * their own can also become the users with these ids. A container has twice a user's share, as a
 * login has, so that none of its users can have all of it, and they leave a part to its root.
 * Containers without a user namespace are told apart by their pid namespace, for which all spaces
 * made in it count. Set-uid programs,
 * such as sandboxes, make namespaces of root's for any user, as often as asked: so a space counts
 * for the login there, too. Not for the user with that id: root of a container can take any.
 */
#include <linux/audit.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/pid_namespace.h>
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
		 "most spaces one user but root can have; a container can have twice as many; neither more than a quarter of max_spaces (default 128)");

/* A quarter for each user or container, so that three cannot have all of them. */
#define PVAS_SHARE_OF_ALL	4
/* And an eighth that no number of users can take from root, or from a container's root. */
#define PVAS_RESERVE_OF_ALL	8

/**
 * struct pvas_payer - those for whom a space counts
 * @uid:	a user
 * @where:	NULL; or a container of root's: its user namespace, or its pid namespace. Each
 *		space that counts for it holds it. Or &pvas_login: all who have logged in as @uid
 */
struct pvas_payer {
	kuid_t uid;
	const void *where;
};

static const char pvas_login;

struct pvas_user {
	struct list_head list;
	struct pvas_payer payer;
	unsigned int spaces;
};

/**
 * struct pvas_paid - one of the users for whom a space counts
 * @list:	of pvas_space.paid
 * @user:	in pvas_users once the space counts, and new before that
 */
struct pvas_paid {
	struct list_head list;
	struct pvas_user *user;
};

static LIST_HEAD(pvas_users);
/*
 * A spinlock, because the cgroup of a process that is preempted with a mutex can starve it,
 * and all others would wait.
 */
static DEFINE_SPINLOCK(pvas_users_lock);
static unsigned int pvas_n_spaces;

static bool pvas_payer_equal(struct pvas_payer a, struct pvas_payer b)
{
	return uid_eq(a.uid, b.uid) && a.where == b.where;
}

static struct pvas_user *pvas_user_find(struct pvas_payer payer)
{
	struct pvas_user *user;

	list_for_each_entry(user, &pvas_users, list)
		if (pvas_payer_equal(user->payer, payer))
			return user;
	return NULL;
}

static void pvas_user_less(struct pvas_user *user)
{
	if (--user->spaces)
		return;
	list_del(&user->list);
	kfree(user);
}

/* ---- for whom a space counts ---- */

/* One more, but each counts once. */
static int pvas_paid_add(struct list_head *paid, kuid_t uid, const void *where)
{
	struct pvas_payer payer = { .uid = uid, .where = where };
	struct pvas_paid *p, *new;

	list_for_each_entry(p, paid, list)
		if (pvas_payer_equal(p->user->payer, payer))
			return 0;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	new->user = kzalloc(sizeof(*new->user), GFP_KERNEL_ACCOUNT);
	if (!new->user) {
		kfree(new);
		return -ENOMEM;
	}
	new->user->payer = payer;
	list_add_tail(&new->list, paid);
	return 0;
}

/* Frees the list, and with it the users that no space counts for. */
static void pvas_paid_free(struct list_head *paid)
{
	struct pvas_paid *p, *next;

	list_for_each_entry_safe(p, next, paid, list) {
		if (p->user && !p->user->spaces)
			kfree(p->user);
		kfree(p);
	}
	INIT_LIST_HEAD(paid);
}

/* The container of root's that @ns is, or is in; or NULL */
static struct user_namespace *pvas_container_of(struct user_namespace *ns)
{
	while (ns->parent && ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns->parent && uid_eq(ns->owner, GLOBAL_ROOT_UID) ? ns : NULL;
}

/* The innermost pid namespace around that only whole root could have made */
static const struct pid_namespace *pvas_roots_pid_ns(const struct pid_namespace *ns)
{
	while (ns->parent && ns->user_ns != &init_user_ns)
		ns = ns->parent;
	return ns;
}

/* The container of root's that the owner or user of @ns is in; or NULL */
static const void *pvas_where(const struct pvas_space *space, struct user_namespace *ns)
{
	const struct pid_namespace *pid_ns = pvas_roots_pid_ns(space->pid_ns);

	return pvas_container_of(ns) ?: (const void *)(pid_ns->parent ? pid_ns : NULL);
}

static int pvas_paid_by_creator(const struct pvas_space *space, bool whole_root,
				struct list_head *paid)
{
	const struct pid_namespace *pid_ns = pvas_roots_pid_ns(space->pid_ns);
	const struct cred *cred = space->cred;
	int err;

	if (uid_eq(cred->uid, GLOBAL_ROOT_UID))
		return pvas_paid_add(paid, cred->uid, whole_root ? NULL : pid_ns);
	err = pvas_paid_add(paid, cred->uid, pvas_where(space, cred->user_ns));
	/*
	 * The root of a container without a user namespace can take any other id, and give it to a
	 * user namespace of its own.
	 */
	if (!err && pid_ns->parent)
		err = pvas_paid_add(paid, GLOBAL_ROOT_UID, pid_ns);
	return err;
}

/* Is the space made by that user, or in a user namespace of that user's? */
static bool pvas_is_of_user(const struct pvas_space *space, kuid_t uid)
{
	const struct user_namespace *ns = space->cred->user_ns;
	bool is = uid_eq(space->cred->uid, uid);

	for (; !is && ns != &init_user_ns; ns = ns->parent)
		is = uid_eq(ns->owner, uid);
	return is;
}

/*
 * The user who has logged in; or, with other ids and in a container of root's, which need not be
 * that user's doing, the login.
 */
static int pvas_paid_by_login(const struct pvas_space *space, struct list_head *paid)
{
	kuid_t login = audit_get_loginuid(current);

	if (uid_eq(space->cred->uid, GLOBAL_ROOT_UID) || !uid_valid(login) ||
	    uid_eq(login, GLOBAL_ROOT_UID))
		return 0;
	if (pvas_is_of_user(space, login) && !pvas_where(space, space->cred->user_ns))
		return pvas_paid_add(paid, login, NULL);
	return pvas_paid_add(paid, login, &pvas_login);
}

static int pvas_paid_by_all(const struct pvas_space *space, bool whole_root,
			    struct list_head *paid)
{
	struct user_namespace *ns;
	int err;

	err = pvas_paid_by_creator(space, whole_root, paid);
	if (!err)
		err = pvas_paid_by_login(space, paid);
	for (ns = space->cred->user_ns; !err && ns != &init_user_ns; ns = ns->parent)
		err = pvas_paid_add(paid, ns->owner, pvas_where(space, ns));
	return err;
}

/* ---- counting ---- */

/* Rounded up, of any number */
static unsigned int pvas_part_of(unsigned int all, unsigned int parts)
{
	return all / parts + !!(all % parts);
}

/* Without the part of its root; but one is for anybody. */
static unsigned int pvas_without_reserve(unsigned int all)
{
	return all > 1 ? all - pvas_part_of(all, PVAS_RESERVE_OF_ALL) : all;
}

/* Is it the root of this container? Without a user namespace, root has root's id. */
static bool pvas_is_root_of(const struct cred *cred, const void *container)
{
	struct user_namespace *ns = pvas_container_of(cred->user_ns);

	return uid_eq(cred->uid, ns && ns == container ? make_kuid(ns, 0) : GLOBAL_ROOT_UID);
}

/*
 * Most spaces that count for @payer. Root sets the limits, so only the total applies to it. A root
 * that could not set them (in a container, or without capabilities) has a share: that of its
 * container, where root's id stands for all.
 */
static unsigned int pvas_share_of(const struct cred *cred, struct pvas_payer payer,
				  bool whole_root)
{
	unsigned int all = READ_ONCE(pvas_max_spaces), most = pvas_part_of(all, PVAS_SHARE_OF_ALL);
	unsigned int user = min(READ_ONCE(pvas_max_spaces_per_user), most), twice, container;
	bool is_root = uid_eq(payer.uid, GLOBAL_ROOT_UID);

	twice = user <= UINT_MAX / 2 ? 2 * user : user;
	container = min(twice, most);
	if (payer.where == &pvas_login)
		return twice;
	if (!payer.where)
		return is_root && whole_root ? all : user;
	if (!is_root)
		return pvas_part_of(container, 2);
	return pvas_is_root_of(cred, payer.where) ? container : pvas_without_reserve(container);
}

/* The count of one of them, in place of the new one */
static int pvas_paid_count(const struct cred *cred, struct pvas_paid *p, bool whole_root)
{
	struct pvas_user *known = pvas_user_find(p->user->payer);

	if ((known ? known->spaces : 0) >= pvas_share_of(cred, p->user->payer, whole_root))
		return -ENOSPC;
	if (known) {
		kfree(p->user);
		p->user = known;
	} else {
		list_add(&p->user->list, &pvas_users);
	}
	p->user->spaces++;
	return 0;
}

/* Undoes it for those before @end. */
static void pvas_paid_uncount(struct list_head *paid, const struct list_head *end)
{
	struct pvas_paid *p;

	list_for_each_entry(p, paid, list) {
		if (&p->list == end)
			break;
		pvas_user_less(p->user);
		p->user = NULL;
	}
}

static int pvas_share_do(const struct cred *cred, struct list_head *paid, bool whole_root)
{
	unsigned int all = READ_ONCE(pvas_max_spaces);
	struct pvas_paid *p;
	int err;

	if (!whole_root)
		all = pvas_without_reserve(all);
	if (pvas_n_spaces >= all)
		return -ENOSPC;
	list_for_each_entry(p, paid, list) {
		err = pvas_paid_count(cred, p, whole_root);
		if (err) {
			pvas_paid_uncount(paid, &p->list);
			return err;
		}
	}
	pvas_n_spaces++;
	return 0;
}

/**
 * pvas_share_take - count one more space of the caller's
 * @space:	the space, with its credentials and its pid namespace
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int pvas_share_take(struct pvas_space *space)
{
	bool whole_root = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	int err;

	INIT_LIST_HEAD(&space->paid);
	err = pvas_paid_by_all(space, whole_root, &space->paid);
	if (!err) {
		spin_lock(&pvas_users_lock);
		err = pvas_share_do(space->cred, &space->paid, whole_root);
		spin_unlock(&pvas_users_lock);
	}
	if (err)
		pvas_paid_free(&space->paid);
	return err;
}

void pvas_share_give_back(struct pvas_space *space)
{
	spin_lock(&pvas_users_lock);
	pvas_paid_uncount(&space->paid, &space->paid);
	pvas_n_spaces--;
	spin_unlock(&pvas_users_lock);
	pvas_paid_free(&space->paid);
}
