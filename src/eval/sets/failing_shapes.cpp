// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/failing_shapes.h"

#include <fmt/format.h>

#include "base/text.h"
#include "core/weighted.h"

namespace cutegen::eval {
namespace {

constexpr const char* kRaises = "() raises ";               // errors.py: blame()
constexpr const char* kNoMemory = "can't allocate memory";  // PyTorch's allocator on the host
constexpr size_t kMostText = 300;

}  // namespace

bool raised_by_module(const Error& error) {
  return error.kind == ErrorKind::user && error.message.find(kRaises) != std::string::npos &&
         error.message.find(kNoMemory) == std::string::npos;
}

bool may_omit(const ShapeCase& shape, const Error& error) {
  return !is_timed(shape) && raised_by_module(error);
}

Result<SetPtr> draw_twice(const Context& ctx, TruthPool& pool, const ShapeCase& shape,
                          const std::string& family, const std::string& program_id) {
  auto set = pool.draw(ctx, shape, family, program_id);
  if (set || !raised_by_module(set.error())) return set;
  return pool.draw(ctx, shape, family, program_id);
}

std::string omitted(const ShapeCase& shape, const std::string& family, const Error& error) {
  return fmt::format("shape {}: omitted, because the module fails on inputs of the family '{}': {}",
                     shape.name, family, sanitize(error.message, kMostText));
}

}  // namespace cutegen::eval
