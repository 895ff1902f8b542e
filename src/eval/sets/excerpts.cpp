// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/excerpts.h"

namespace cutegen::eval {
namespace {

const std::vector<std::string> kFamilies{"made", "signed"};

Excerpts::Drawn nothing(std::string why_not) {
  return {.excerpt = nullptr, .set = nullptr, .why_not = std::move(why_not)};
}

}  // namespace

Excerpts::Excerpts(const Task& task, Source source)
    : task_(task), source_(std::move(source)), random_(std::random_device()()) {}

void Excerpts::add(const ShapeCase& shape, Result<torch::Excerpt> planned) {
  OfShape& of = shapes_[shape.name];
  if (!planned) {
    of.why_not = planned.error().message;
    return;
  }
  of.excerpt = std::move(*planned);
  of.pool = std::make_unique<TruthPool>(
      task_, [this, &of](const Context& ctx, const ShapeCase&, const std::string& family,
                         uint64_t seed) { return source_(ctx, of.excerpt, family, seed); });
  std::vector<std::pair<ShapeCase, std::string>> wanted;
  for (const std::string& family : kFamilies) wanted.emplace_back(of.excerpt.shape, family);
  of.pool->refill_in_background(wanted);
}

Result<Excerpts::Drawn> Excerpts::draw(const Context& ctx, const std::string& shape,
                                       const std::string& program_id) {
  const auto at = shapes_.find(shape);
  if (at == shapes_.end()) return nothing("the shape has no excerpt");
  OfShape& of = at->second;
  if (!of.pool) return nothing(of.why_not);
  auto set =
      of.pool->draw(ctx, of.excerpt.shape, kFamilies[random_() % kFamilies.size()], program_id);
  if (set) return Drawn{.excerpt = &of.excerpt, .set = *set, .why_not = {}};
  const Error& why = set.error();
  if (why.kind != ErrorKind::unsupported && why.kind != ErrorKind::user) return fail(why);
  of.why_not = why.message;
  of.pool.reset();
  return nothing(of.why_not);
}

void Excerpts::pause() {
  for (auto& [name, of] : shapes_)
    if (of.pool) of.pool->pause();
}

void Excerpts::resume() {
  for (auto& [name, of] : shapes_)
    if (of.pool) of.pool->resume();
}

}  // namespace cutegen::eval
