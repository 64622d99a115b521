/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Places at which a test ends, replaces or stops this process: before and after what another
 * rank can see, a store or an atomic operation. They exist only in the component that
 * tests/points.sh uses; see tests/points/.
 */
#ifndef PML_PVAS_FAULT_POINT_H
#define PML_PVAS_FAULT_POINT_H

#ifdef MCA_PML_PVAS_FAULT_POINTS
void mca_pml_pvas_reach_point(const char *name);
#define mca_pml_pvas_fault_point(name) mca_pml_pvas_reach_point(name)
#else
#define mca_pml_pvas_fault_point(name) ((void)0)
#endif

#endif /* PML_PVAS_FAULT_POINT_H */
