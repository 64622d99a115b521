/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assembling a classic BPF program for seccomp, with labels. For filter.c. */
#ifndef PVAS_USER_BPF_H
#define PVAS_USER_BPF_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#define CODE_MAX	640
#define LABELS_MAX	160	/* of 256: a jump holds a byte */

/* Labels: the next instruction, the return values, then those of new_label(). */
enum { NEXT, ALLOW, NOTIFY, EPERM_END, ENOSYS_END, FIRST_FREE_LABEL };

static const uint32_t results[FIRST_FREE_LABEL] = {
	[ALLOW] = SECCOMP_RET_ALLOW,
	[NOTIFY] = SECCOMP_RET_USER_NOTIF,
	[EPERM_END] = SECCOMP_RET_ERRNO | EPERM,
	[ENOSYS_END] = SECCOMP_RET_ERRNO | ENOSYS,
};

/**
 * struct program - a filter being assembled
 * @code:	jumps hold labels until resolve()
 * @len:	instructions
 * @where:	of each label
 * @labels:	used
 * @shift:	from the upper half of an address to the index
 * @first:	index
 * @last:	index
 * @cookie:	see check_stop()
 */
struct program {
	struct sock_filter code[CODE_MAX];
	unsigned int len;
	unsigned int where[LABELS_MAX];
	unsigned int labels;
	unsigned int shift;
	uint32_t first;
	uint32_t last;
	uint64_t cookie;
};

static inline void op(struct program *p, uint16_t code, uint32_t k)
{
	p->code[p->len++] = (struct sock_filter){ .code = code, .k = k };
}

static inline void jump(struct program *p, uint16_t test, uint32_t k, unsigned int yes,
			unsigned int no)
{
	p->code[p->len++] = (struct sock_filter){
		.code = BPF_JMP | test, .k = k, .jt = yes, .jf = no,
	};
}

static inline void go(struct program *p, unsigned int label)
{
	if (label < FIRST_FREE_LABEL)
		op(p, BPF_RET | BPF_K, results[label]);
	else
		op(p, BPF_JMP | BPF_JA, label);
}

static inline void load(struct program *p, uint32_t offset)
{
	op(p, BPF_LD | BPF_W | BPF_ABS, offset);
}

static inline unsigned int new_label(struct program *p)
{
	return p->labels++;
}

static inline void bind(struct program *p, unsigned int label)
{
	p->where[label] = p->len;
}

/* The filter returns each result in many places: find the next. */
static inline unsigned int find_result(const struct program *p, unsigned int from,
				       unsigned int label)
{
	unsigned int i;

	for (i = from + 1; i < p->len; i++)
		if (p->code[i].code == (BPF_RET | BPF_K) && p->code[i].k == results[label])
			break;
	return i;
}

static inline unsigned int distance(const struct program *p, unsigned int from, unsigned int label)
{
	if (label == NEXT)
		return 0;
	if (label < FIRST_FREE_LABEL)
		return find_result(p, from, label) - from - 1;
	return p->where[label] - from - 1;
}

/* Replace labels by distances. Jumps go forward only, conditional ones by at most 255. */
static inline int resolve(struct program *p)
{
	unsigned int i, yes, no;

	for (i = 0; i < p->len; i++) {
		struct sock_filter *f = &p->code[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		if (f->code == (BPF_JMP | BPF_JA)) {
			f->k = distance(p, i, f->k);
			continue;
		}
		yes = distance(p, i, f->jt);
		no = distance(p, i, f->jf);
		if (yes > 255 || no > 255)
			return -EINVAL;
		f->jt = yes;
		f->jf = no;
	}
	return 0;
}

#endif /* PVAS_USER_BPF_H */
