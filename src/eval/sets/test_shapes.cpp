// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/test_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "eval/sets/family.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kSmallOfficialBytes = int64_t{2} << 20;
constexpr double kSmallOfficialFlops = 5e8;                  // limits large intermediate values
constexpr int64_t kMostOfficialElements = int64_t{1} << 22;  // limits partly read caches and tables
constexpr int64_t kMuchMore = int64_t{1} << 40;
constexpr double kLightWork = 32;  // FLOPs per element
constexpr int64_t kMostLightElements = int64_t{3} << 21;
// For a module without shapes of cutegen's own: the torch worker's limits for modules that fix
// their sizes (shrink.py).
constexpr double kMostFixedFlops = 4e8;
constexpr int64_t kMostFixedElements = int64_t{3} << 24;
constexpr double kMostFlopsOfSm90a = 1.5e9;
constexpr int64_t kMostElementsOfSm90a = int64_t{3} << 20;

bool is_own(const ShapeCase& shape) {
  return shape.kind != ShapeKind::user && is_test_shape(shape);
}

}  // namespace

int64_t elements_of(const ShapeCase& shape) {
  int64_t all = 0;
  for (const auto& [name, dims] : shape.tensors)
    if (auto n = element_count(dims); n) all = std::min(kMuchMore, all + std::min(kMuchMore, *n));
  return all;
}

bool is_test_shape(const ShapeCase& shape) {
  return !is_timed(shape) ||
         (shape.least_bytes.value <= kSmallOfficialBytes &&
          shape.flops.value <= kSmallOfficialFlops && elements_of(shape) <= kMostOfficialElements);
}

std::vector<std::string> families_for(const ShapeCase& shape, const std::vector<std::string>& all,
                                      uint64_t salt) {
  if (!shape.values.empty()) return {family::ranged};
  const bool much =
      (shape.kind == ShapeKind::small || shape.kind == ShapeKind::odd) &&
      (shape.flops.value > kMostTestFlops / 2 || elements_of(shape) > kMostTestElements);
  if ((shape.kind != ShapeKind::derived && !much) || all.size() < 3) return all;
  auto telling = std::find(all.begin(), all.end(), "outliers");
  if (telling == all.end()) telling = all.begin();
  std::vector<std::string> out{*telling};
  const size_t other =
      std::hash<std::string>()(std::to_string(salt) + shape.name) % (all.size() - 1);
  out.push_back(all[other + (other >= size_t(telling - all.begin()) ? 1 : 0)]);
  return out;
}

WorkLimit::WorkLimit(const Task& task, bool sm_90a)
    : flops_(sm_90a ? kMostFlopsOfSm90a : kMostTestFlops),
      elements_(sm_90a ? kMostElementsOfSm90a : kMostTestElements),
      light_elements_(kMostLightElements) {
  bool any = false;
  for (const ShapeCase& s : task.shapes) {
    if (!is_own(s)) continue;
    any = true;
    flops_ = std::max(flops_, 1.2 * s.flops.value);
    elements_ = std::max(elements_, elements_of(s));
  }
  if (!any) flops_ = kMostFixedFlops, elements_ = kMostFixedElements;
  light_elements_ = std::max(light_elements_, elements_);
}

bool WorkLimit::permits(const ShapeCase& shape) const {
  const int64_t elements = elements_of(shape);
  const bool light = shape.flops.value <= kLightWork * double(elements);
  return shape.flops.value <= flops_ && elements <= (light ? light_elements_ : elements_);
}

std::string WorkLimit::text() const {
  return fmt::format("{} and {:.3g} million elements", human(Flops{flops_}),
                     double(elements_) / 1e6);
}

Result<void> drop_large_test_shapes(Task& task, const std::string& side_file) {
  const WorkLimit limit(task);
  const bool any = std::ranges::any_of(
      task.shapes, [](const ShapeCase& s) { return s.kind == ShapeKind::user; });
  std::erase_if(task.shapes, [&](const ShapeCase& s) {
    if (s.kind != ShapeKind::user || is_timed(s) || limit.permits(s)) return false;
    task.notes.push_back(fmt::format(
        "the shape '{}' is not tested: with {} and {:.3g} million elements it is too much work for "
        "a simulator, which takes at most {}. Make it smaller, give it a weight (then a sample of "
        "its blocks runs), or use a GPU",
        s.name, human(s.flops), double(elements_of(s)) / 1e6, limit.text()));
    return true;
  });
  if (!any || std::ranges::any_of(task.shapes, is_test_shape)) return {};
  return user_error(
      "no test shape is left: cutegen finds none for this module, and every shape in [[shapes]] is "
      "too large to be tested on a simulator",
      side_file,
      fmt::format("add an entry with weight = 0, of at most {}, or use a GPU", limit.text()));
}

}  // namespace cutegen::eval
