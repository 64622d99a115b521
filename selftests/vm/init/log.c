// SPDX-License-Identifier: GPL-2.0-only
/* The ways to the host: the kernel log and the report. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

static int kmsg = -1;
static int report = -1;

void open_log(void)
{
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	report = open("/dev/ttyS1", O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

/* One line into @fd. Nothing can be done about a failure, and nobody told. */
static void put_line(int fd, const char *prefix, const char *fmt, va_list ap)
{
	char buf[900];
	int len, n;

	len = snprintf(buf, sizeof(buf), "%s", prefix);
	n = vsnprintf(buf + len, sizeof(buf) - len, fmt, ap);
	if (n < 0)
		return;
	len += n;
	if (len > (int)sizeof(buf) - 1)
		len = sizeof(buf) - 1;
	buf[len++] = '\n';
	while (write(fd, buf, len) < 0 && errno == EINTR)
		;
}

__attribute__((format(printf, 1, 2)))
void klog(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(kmsg, "<5>pvas-vm: ", fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 1, 2)))
void tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(report, "", fmt, ap);
	va_end(ap);
}

__attribute__((noreturn))
void power_off(void)
{
	tcdrain(report);
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* The machine can't do its work; the host says so and exits with 122. */
__attribute__((format(printf, 1, 2), noreturn))
void die(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	klog("fail: %s", text);
	tell("fail %s", text);
	power_off();
}

long uptime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

int write_file(const char *path, const char *text)
{
	int fd, ret = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

void must_mount(const char *src, const char *dir, const char *type,
		       unsigned long flags, const char *data)
{
	mkdir(dir, 0755);
	if (mount(src, dir, type, flags, data))
		die("mount %s on %s: %s", type, dir, strerror(errno));
}
