// SPDX-License-Identifier: Apache-2.0
// Orders the reads and writes of stages that mutate tensors of the task.
//
// Contract: after read_before_writing(), every stage reads the old values of mutated tensors. A
// loop nest may read and write the same element of a tensor, because one thread reads the element
// and then writes it. If another stage would read an element after its change, the new values go to
// scratch memory first, and a last stage copies them to the tensor.
//
// Example: CG_TRY(stages, read_before_writing(task, std::move(stages)));
#pragma once

#include "core/task.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

Result<Stages> read_before_writing(const Task& task, Stages stages);

}  // namespace cutegen::recipes
