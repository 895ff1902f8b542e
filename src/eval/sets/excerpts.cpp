// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/excerpts.h"

namespace cutegen::eval {
namespace {

const std::vector<std::string> kFamilies{"made", "signed"};

}  // namespace

Excerpts::Excerpts(const Task& task, Result<torch::Excerpt> planned, Source source)
    : random_(std::random_device()()) {
  if (!planned) {
    why_not_ = planned.error().message;
    return;
  }
  excerpt_ = std::move(*planned);
  pool_ = std::make_unique<TruthPool>(
      task, [this, source = std::move(source)](const Context& ctx, const ShapeCase&,
                                               const std::string& family, uint64_t seed) {
        return source(ctx, excerpt_, family, seed);
      });
  std::vector<std::pair<ShapeCase, std::string>> wanted;
  for (const std::string& family : kFamilies) wanted.emplace_back(excerpt_.shape, family);
  pool_->refill_in_background(wanted);
}

Result<Excerpts::Drawn> Excerpts::draw(const Context& ctx, const std::string& program_id) {
  if (!pool_) return Drawn{.excerpt = nullptr, .set = nullptr, .why_not = why_not_};
  auto set = pool_->draw(ctx, excerpt_.shape, kFamilies[random_() % kFamilies.size()], program_id);
  if (set) return Drawn{.excerpt = &excerpt_, .set = *set, .why_not = {}};
  const Error& why = set.error();
  if (why.kind != ErrorKind::unsupported && why.kind != ErrorKind::user) return fail(why);
  why_not_ = why.message;
  pool_.reset();
  return Drawn{.excerpt = nullptr, .set = nullptr, .why_not = why_not_};
}

void Excerpts::pause() {
  if (pool_) pool_->pause();
}

void Excerpts::resume() {
  if (pool_) pool_->resume();
}

}  // namespace cutegen::eval
