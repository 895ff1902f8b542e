// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/admission.h"

#include <algorithm>
#include <optional>

#include "eval/sets/failing_shapes.h"
#include "eval/sets/test_shapes.h"

namespace cutegen::eval {
namespace {

// One set of each stocked family. If the module fails at the shape, adds a note.
Result<std::vector<SetPtr>> draw_all(const Context& ctx, const ShapeCase& shape, TruthPool& pool,
                                     std::vector<std::string>& notes) {
  std::vector<SetPtr> out;
  for (const std::string& family : stocked_families(shape)) {
    auto set = draw_twice(ctx, pool, shape, family, TruthPool::kAdmission);
    if (!set && may_omit(shape, set.error())) notes.push_back(omitted(shape, family, set.error()));
    if (!set) return fail(set.error());
    out.push_back(std::move(*set));
  }
  return out;
}

}  // namespace

const std::vector<std::string>& input_families() {
  static const std::vector<std::string> families{family::made,    family::is_signed,
                                                 family::heavy,   family::outliers,
                                                 family::special, family::extremes};
  return families;
}

std::vector<const ShapeCase*> test_shapes(const Task& task) {
  std::vector<const ShapeCase*> out;
  for (const ShapeCase& s : task.shapes)
    if (is_test_shape(s)) out.push_back(&s);
  return out;
}

std::vector<std::string> stocked_families(const ShapeCase& shape) {
  std::vector<std::string> families = families_for(shape, input_families(), 0);
  if (families.size() < input_families().size()) families.resize(1);
  return families;
}

Result<Admission> admission_of(const Context& ctx, Task& task, TruthPool& pool) {
  std::vector<SetPtr> sets, replayed;
  std::vector<std::string> failing, notes;
  std::optional<Error> error;
  for (const ShapeCase* shape : test_shapes(task)) {
    auto drawn = draw_all(ctx, *shape, pool, notes);
    if (!drawn && !may_omit(*shape, drawn.error())) return fail(drawn.error());
    if (!drawn) {
      if (!error) error = drawn.error();
      failing.push_back(shape->name);
      continue;
    }
    for (SetPtr& set : *drawn)
      if (!set->as_made) sets.push_back(std::move(set));
    if (!replayed.empty()) continue;  // the replayed output needs one shape only
    CG_TRY(SetPtr other, pool.make(ctx, *shape, input_families().front()));
    replayed.push_back(other);
  }
  if (error && replayed.empty()) return fail(*error);  // no test shape remains
  std::erase_if(task.shapes, [&](const ShapeCase& s) {
    return std::ranges::find(failing, s.name) != failing.end();
  });
  task.notes.insert(task.notes.end(), notes.begin(), notes.end());
  return admit(task, sets, replayed);
}

}  // namespace cutegen::eval
