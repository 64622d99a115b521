/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the user backend to the loader of a task */
#ifndef PVAS_LOADER_LOADING_H
#define PVAS_LOADER_LOADING_H

#include <linux/types.h>

/**
 * struct pvas_loading - in the launcher's memory, which is the task's, too
 * @mark:	shows the filter that a mapping is the loader's: in the upper half of its descriptor
 * @active:	the program is being mapped; cleared by the loader
 */
struct pvas_loading {
	__u32 mark;
	__u32 active;
};

#endif /* PVAS_LOADER_LOADING_H */
