// SPDX-License-Identifier: Apache-2.0
// Stages that replace the values of tensors that they also read.
//
// Contract: after read_before_writing(), every stage reads the old values of mutated tensors. A
// loop nest may read and write a tensor at the same element, because one thread reads the element
// before it writes it. If any other stage would read a new value, the stages write the new values
// to scratch, and a last stage copies them.
//
// Example: CG_TRY(stages, read_before_writing(task, std::move(stages)));
#pragma once

#include "core/task.h"
#include "recipes/nest/stages.h"

namespace cutegen::recipes {

Result<Stages> read_before_writing(const Task& task, Stages stages);

}  // namespace cutegen::recipes
