/* SPDX-License-Identifier: GPL-2.0-only */
/* Common to all files of init: see main.c. */
#ifndef INIT_H
#define INIT_H

#include <stddef.h>
#include <sys/types.h>

#define P9_OPTIONS	"trans=virtio,version=9p2000.L,msize=262144"

/* The job that the host requests; filled by read_job(). */
struct job {
	const char *cwd;
	const char *module;	/* file name in io, or NULL */
	const char *modules;	/* folder of the kernel's own, if not in /lib/modules, or NULL */
	uid_t uid;
	gid_t gid;
	gid_t groups[64];
	size_t n_groups;
	long limit;		/* seconds of uptime */
	char **env;
	char **argv;
};

extern struct job job;

/* A pipe the command writes to, and the file on the host it is copied into. */
struct stream {
	const char *name;
	int from;
	int to;
	unsigned long long bytes;
};

/* log.c */
void open_log(void);
__attribute__((format(printf, 1, 2))) void klog(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void tell(const char *fmt, ...);
__attribute__((noreturn)) void power_off(void);
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);
long uptime(void);
int write_file(const char *path, const char *text);
void must_mount(const char *src, const char *dir, const char *type, unsigned long flags,
		const char *data);

/* job.c */
void read_job(void);

/* root.c */
void mount_root(void);
void enter_root(void);
void mount_all(void);
void link_modules(void);
void name_host(void);

/* module.c */
void insert_boot_modules(void);
void insert_module(int fd);
void remove_module(void);
void find_leaks(void);

/* command.c */
int run_command(struct stream *out, struct stream *err);
void kill_all(void);

#endif /* INIT_H */
