// SPDX-License-Identifier: Apache-2.0
// Decides whether the evaluator may omit a test shape because the task's module fails at the shape.
//
// Contract: raised_by_module() is true for exceptions that the task file raises in the torch
// worker. This process runs no program. raised_by_module() is false if the worker died, hung or
// lacked memory, because a program may cause that. may_omit() is true only for test shapes that
// are not timed, so never for the official shape. draw_twice() draws from the pool and, if the
// module raises, once more with another seed. The caller names each omitted shape with omitted()
// in the verdict, and omits a shape only if another test shape remains.
//
// Example: auto set = draw_twice(ctx, pool, shape, "made", id);
//   if (!set && may_omit(shape, set.error())) skipped.push_back(omitted(shape, "made",
//   set.error()));
#pragma once

#include <string>

#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

bool raised_by_module(const Error& error);
bool may_omit(const ShapeCase& shape, const Error& error);
Result<SetPtr> draw_twice(const Context& ctx, TruthPool& pool, const ShapeCase& shape,
                          const std::string& family, const std::string& program_id);
// Returns "shape odd2: omitted, because the module fails on inputs of the family 'made': ...".
std::string omitted(const ShapeCase& shape, const std::string& family, const Error& error);

}  // namespace cutegen::eval
