/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The store HOST:PORT is a library of its own, which is loaded when a server is named: UCX
 * takes time and memory at its start, and not every machine has it.
 */
#ifndef PVAS_FAR_PLUGIN_H
#define PVAS_FAR_PLUGIN_H

#include "../store.h"

#define FAR_PLUGIN		"pvasfar-host.so"
#define FAR_PLUGIN_START	"pvasfar_host_start"
/* Changes with store.h */
#define FAR_PLUGIN_VERSION	3

typedef int far_fail_fn(int err, const char *format, ...);

/**
 * pvasfar_host_start - the library's one function
 * @version:	FAR_PLUGIN_VERSION of the caller
 * @fail:	the caller's far_fail()
 *
 * Return: the implementation, NULL if the versions differ.
 */
typedef const struct far_store_ops *far_plugin_fn(unsigned int version, far_fail_fn *fail);

#endif
