// SPDX-License-Identifier: Apache-2.0
// The floor of a task on a GPU (the least time of any correct kernel), and the texts that show it.
//
// Contract: work_of() returns the least number of bytes that a program must move at a shape, and
// the number of FLOPs. At every shape, it divides the FLOPs among the classes of operators in the
// same proportions as at the official shape (the sizes in the task file). If the task has no graph,
// all FLOPs count as matrix products, because matrix products take the least time. The function
// floor_of() passes the result of work_of() to roofline() (gpu/spec.h). All reports and prompts use
// floor_text() and roofline_text(), which say whether a figure is a bound or an estimate.
//
// Example: Roofline r = floor_of(*find_gpu("h200"), task);
//          std::string line = floor_text(r.floor_ns, r.reachable_ns, r.bound_by);
#pragma once

#include "core/task.h"
#include "gpu/spec.h"

namespace cutegen {

Work work_of(const Task& task, const ShapeCase& shape);
Roofline floor_of(const GpuSpec& gpu, const Task& task, const ShapeCase& shape);
// Returns the floor of the whole task. If the task has several timed shapes, the times are weighted
// geometric means over the shapes, and `bound_by` refers to the official shape.
Roofline floor_of(const GpuSpec& gpu, const Task& task);

// Returns the total size of the outputs and of the tensors that the reference mutates.
Bytes written_bytes(const Task& task, const ShapeCase& shape);

// Returns a text such as "213 us (least traffic at the nominal bandwidth): no kernel is faster;
// reachable 245 us (a copy's bandwidth)". Runs of older versions recorded the roofline as floor_ns,
// and no reachable time. If reachable_ns is 0, the text therefore calls floor_ns a roofline.
std::string floor_text(double floor_ns, double reachable_ns, RooflineBound bound_by);
// Returns the same text for a task on which no evaluator has tried degenerate solutions, such as
// zeros. If such a solution is correct, the true floor is lower, and the text says so.
std::string unadmitted_floor_text(const Roofline& bounds);
// Returns a text such as "2.05 ms (bound by compute), an estimate for the operations as written;
// algebraic rewrites can beat it". Returns an empty text if roofline_ns is 0 (unknown).
std::string roofline_text(double roofline_ns, RooflineBound bound_by);

}  // namespace cutegen
