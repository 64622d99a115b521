// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module. Processes are ob1's matter: we look for them when a communicator is added. */
#include "pml_pvas.h"

#define component mca_pml_pvas_component

static int add_procs(struct ompi_proc_t **procs, size_t nr)
{
	mca_pml_pvas_fault_point("processes begun");
	return component.ob1.pml_add_procs(procs, nr);
}

static int del_procs(struct ompi_proc_t **procs, size_t nr)
{
	return component.ob1.pml_del_procs(procs, nr);
}

static int enable(bool on)
{
	if (on)
		mca_pml_pvas_register_again();
	return component.ob1.pml_enable(on);
}

static int dump(struct ompi_communicator_t *comm, int verbose)
{
	return component.ob1.pml_dump(comm, verbose);
}

mca_pml_base_module_t mca_pml_pvas_module = {
	.pml_add_procs = add_procs,
	.pml_del_procs = del_procs,
	.pml_enable = enable,
	.pml_progress = mca_pml_pvas_progress,
	.pml_add_comm = mca_pml_pvas_add_comm,
	.pml_del_comm = mca_pml_pvas_del_comm,
	.pml_irecv_init = mca_pml_pvas_irecv_init,
	.pml_irecv = mca_pml_pvas_irecv,
	.pml_recv = mca_pml_pvas_recv,
	.pml_isend_init = mca_pml_pvas_isend_init,
	.pml_isend = mca_pml_pvas_isend,
	.pml_send = mca_pml_pvas_send,
	.pml_iprobe = mca_pml_pvas_iprobe,
	.pml_probe = mca_pml_pvas_probe,
	.pml_start = mca_pml_pvas_start,
	.pml_improbe = mca_pml_pvas_improbe,
	.pml_mprobe = mca_pml_pvas_mprobe,
	.pml_imrecv = mca_pml_pvas_imrecv,
	.pml_mrecv = mca_pml_pvas_mrecv,
	.pml_dump = dump,
};
