// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which ranks of other nodes use this component, too, and which of them share a space? Each
 * rank publishes a number that stands for its space and its parameters, its home: ranks of one
 * home make up a node. All ranks of a communicator must come to the same answer, so nothing
 * else counts.
 */
#include "coll_pvas.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../btl_glue/open_mpi.h"

#define component mca_coll_pvas_component

#define KEY "coll.pvas.home"

/* Parameters that ranks on different nodes must have in common: indices of @settings */
static const int common[] = { 0, 6, 7, 8, 9, 10 };

/* Without a fence in MPI_Init() ranks would wait for each other's records. */
bool mca_coll_pvas_several_nodes(void)
{
	if (!component.segment || opal_pmix_base_async_modex || !opal_pmix_collect_all_data)
		return false;
	return component.node_ranks || (int)MCA_BTL_PVAS_NR_PROCS >
						(int)opal_process_info.num_local_peers + 1;
}

/* FNV-1a */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *p = data;

	while (size--)
		hash = (hash ^ *p++) * 0x100000001b3;
	return hash;
}

static uint64_t mix_file(uint64_t hash, const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return hash;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 ? mix(hash, text, n) : hash;
}

/* Ids of spaces are unique in a kernel, or, with the user backend, in a namespace of pids. */
void mca_coll_pvas_find_home(void)
{
	char text[64];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text));
	uint64_t hash = 0xcbf29ce484222325;
	uint32_t node = component.node_ranks ? OPAL_PROC_MY_NAME.vpid / component.node_ranks : 0;

	hash = mix_file(hash, "/proc/sys/kernel/random/boot_id");
	if (n > 0)
		hash = mix(hash, text, n);
	hash = mix(hash, &component.modex.space, sizeof(component.modex.space));
	hash = mix(hash, component.modex.settings, sizeof(component.modex.settings));
	hash = mix(hash, &node, sizeof(node));
	component.modex.home = hash ? hash : 1;
}

/* For all nodes */
bool mca_coll_pvas_publish_home(void)
{
	int rc;

	OPAL_MODEX_SEND_STRING(rc, MCA_BTL_PVAS_MODEX_GLOBAL, KEY, &component.modex,
			       sizeof(component.modex));
	return rc == OPAL_SUCCESS;
}

/* 0: it does not use this component as we do */
uint64_t mca_coll_pvas_home_of(const struct mca_coll_pvas_modex *modex)
{
	size_t i;

	if (modex->version != component.modex.version)
		return 0;
	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (modex->settings[common[i]] != component.modex.settings[common[i]])
			return 0;
	return modex->home;
}

/*
 * The server has all that ranks published once they have met in a fence, so it shall not look
 * for what a rank without this component did not publish, which takes 2 s.
 */
uint64_t mca_coll_pvas_look_up_home(const opal_process_name_t *rank)
{
	struct mca_coll_pvas_modex modex;

	return mca_btl_pvas_get_now(rank, KEY, &modex, sizeof(modex)) ?
	       mca_coll_pvas_home_of(&modex) : 0;
}
