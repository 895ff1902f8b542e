// SPDX-License-Identifier: Apache-2.0
// The floor of a task on a GPU, and its wording.
//
// Contract: work_of() takes a shape's least bytes and FLOPs. It splits the FLOPs by kind of
// operator as at the official shape; without a graph it counts all of them as products, which gives
// the least time. floor_of() is the roofline() of that work. The texts say which figure is a bound
// and which an estimate; every page, table head and question uses them.
//
// Example: Roofline r = floor_of(*find_gpu("h200"), task);
//          std::string line = floor_text(r.floor_ns, r.reachable_ns, r.bound_by);
#pragma once

#include "core/task.h"
#include "gpu/spec.h"

namespace cutegen {

Work work_of(const Task& task, const ShapeCase& shape);
Roofline floor_of(const GpuSpec& gpu, const Task& task, const ShapeCase& shape);
// For the headline of a task. With several timed shapes: the weighted geometric means, bound by
// what bounds the official shape.
Roofline floor_of(const GpuSpec& gpu, const Task& task);

// Bytes of the outputs and of the tensors that the reference mutates.
Bytes written_bytes(const Task& task, const ShapeCase& shape);

// "213 us (least traffic at the nominal bandwidth): no kernel is faster; reachable 245 us (a copy's
// bandwidth)". Without a reachable bound (runs of older versions): their roofline, labelled as
// such.
std::string floor_text(double floor_ns, double reachable_ns, RooflineBound bound_by);
// "2.05 ms (bound by compute), an estimate: the operations as written; algebra can pass it". Empty
// if unknown.
std::string roofline_text(double roofline_ns, RooflineBound bound_by);

}  // namespace cutegen
