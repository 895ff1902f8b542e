// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/admission.h"

#include "eval/sets/test_shapes.h"

namespace cutegen::eval {

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

Result<Admission> admission_of(const Context& ctx, const Task& task, TruthPool& pool) {
  std::vector<SetPtr> sets, replayed;
  for (const ShapeCase* shape : test_shapes(task)) {
    for (const std::string& family : stocked_families(*shape)) {
      CG_TRY(SetPtr set, pool.draw(ctx, *shape, family, TruthPool::kAdmission));
      if (!set->as_made) sets.push_back(set);
    }
    if (!replayed.empty()) continue;  // the replayed output needs one shape only
    CG_TRY(SetPtr other, pool.make(ctx, *shape, input_families().front()));
    replayed.push_back(other);
  }
  return admit(task, sets, replayed);
}

}  // namespace cutegen::eval
