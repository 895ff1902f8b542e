// SPDX-License-Identifier: Apache-2.0
// The floor of a task on a GPU, and its wording.
//
// Contract: work_of() takes a shape's least bytes and FLOPs. It splits the FLOPs by kind of
// operator in the proportions of the official shape. Without a graph it counts all FLOPs as matrix
// products, which gives the shortest time. floor_of() is the roofline() of that work. The texts say
// which figure is a bound and which is an estimate. All pages, tables and questions use these
// texts.
//
// Example: Roofline r = floor_of(*find_gpu("h200"), task);
//          std::string line = floor_text(r.floor_ns, r.reachable_ns, r.bound_by);
#pragma once

#include "core/task.h"
#include "gpu/spec.h"

namespace cutegen {

Work work_of(const Task& task, const ShapeCase& shape);
Roofline floor_of(const GpuSpec& gpu, const Task& task, const ShapeCase& shape);
// For a task's headline. With several timed shapes the times are weighted geometric means, and
// `bound_by` refers to the official shape.
Roofline floor_of(const GpuSpec& gpu, const Task& task);

// Bytes of the outputs and of the tensors that the reference mutates.
Bytes written_bytes(const Task& task, const ShapeCase& shape);

// "213 us (least traffic at the nominal bandwidth): no kernel is faster; reachable 245 us (a copy's
// bandwidth)". Runs of older versions have no reachable bound; the text is then their roofline,
// labelled as such.
std::string floor_text(double floor_ns, double reachable_ns, RooflineBound bound_by);
// "2.05 ms (bound by compute), an estimate for the operations as written; algebraic rewrites can
// beat it". Empty if unknown.
std::string roofline_text(double roofline_ns, RooflineBound bound_by);

}  // namespace cutegen
