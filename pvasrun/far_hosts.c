// SPDX-License-Identifier: GPL-2.0-only
/* The list of --far-start. */
#include "far_hosts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4)))
static int refuse(char *why, size_t len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, len, format, args);
	va_end(args);
	return -1;
}

/* "ssh:" and the like: @text goes on behind it. */
static enum far_way take_way(const char **text)
{
	static const struct {
		const char *prefix;
		enum far_way way;
	} ways[] = { { "ssh:", FAR_BY_SSH }, { "srun:", FAR_BY_SRUN }, { "local:", FAR_LOCALLY } };
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		size_t n = strlen(ways[i].prefix);

		if (strncmp(*text, ways[i].prefix, n))
			continue;
		*text += n;
		return ways[i].way;
	}
	if (!strncmp(*text, "localhost", 9) && !strchr("-._@", (*text)[9] ? (*text)[9] : ','))
		return FAR_LOCALLY;
	return getenv("SLURM_JOB_ID") ? FAR_BY_SRUN : FAR_BY_SSH;
}

/* It becomes an argument of ssh or srun, which take more than names there. */
static int is_name(const char *name)
{
	static const char most[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";

	return *name && *name != '-' && *name != '@' && !name[strspn(name, most)];
}

static int take_address(struct far_host *host, const char *text)
{
	struct in6_addr number;

	if (inet_pton(AF_INET, text, &number) == 1)
		snprintf(host->address, sizeof(host->address), "%s", text);
	else if (inet_pton(AF_INET6, text, &number) == 1)
		snprintf(host->address, sizeof(host->address), "[%s]", text);
	else
		return -1;
	return 0;
}

static int parse_one(struct far_host *host, char *text, char *why, size_t len)
{
	const char *name = text;
	char *address = strchr(text, '=');

	*host = (struct far_host){ 0 };
	if (address)
		*address++ = '\0';
	host->way = take_way(&name);
	if (!is_name(name) || strlen(name) >= sizeof(host->name))
		return refuse(why, len, "'%.60s' is not the name of a host", name);
	strcpy(host->name, name);
	if (address && take_address(host, address))
		return refuse(why, len, "'%.60s' is not the number of an address (%.60s)", address,
			      name);
	return 0;
}

int far_hosts_parse(const char *text, struct far_host hosts[static FAR_HOSTS_MAX], char *why,
		    size_t len)
{
	char word[512];
	int count = 0;
	size_t n;

	for (; ; text += n + 1) {
		n = strcspn(text, ",");
		if (n >= sizeof(word) || count == FAR_HOSTS_MAX)
			return refuse(why, len, "at most %d hosts", FAR_HOSTS_MAX);
		memcpy(word, text, n);
		word[n] = '\0';
		if (parse_one(&hosts[count], word, why, len))
			return -1;
		count++;
		if (!text[n])
			return count;
	}
}

/* "user@node7" is node7. */
static const char *node_of(const struct far_host *host)
{
	const char *at = strrchr(host->name, '@');

	return at ? at + 1 : host->name;
}

static int resolve(struct far_host *host, char *why, size_t len)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char text[NI_MAXHOST];
	int err;

	if (host->way == FAR_LOCALLY)
		return take_address(host, "127.0.0.1");
	err = getaddrinfo(node_of(host), NULL, &hints, &list);
	if (err)
		return refuse(why, len, "%s: %s (or say %s=ADDRESS)", host->name, gai_strerror(err),
			      host->name);
	err = getnameinfo(list->ai_addr, list->ai_addrlen, text, sizeof(text), NULL, 0,
			  NI_NUMERICHOST);
	freeaddrinfo(list);
	/* One of a link, as fe80::1%eth0, has a meaning on this node only. */
	if (err || take_address(host, text))
		return refuse(why, len, "%s: no address for other nodes (say %s=ADDRESS)",
			      host->name, host->name);
	return 0;
}

int far_hosts_resolve(struct far_host *hosts, unsigned int count, char *why, size_t len)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!hosts[i].address[0] && resolve(&hosts[i], why, len))
			return -1;
	return 0;
}
