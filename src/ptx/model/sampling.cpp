// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/sampling.h"

#include <algorithm>
#include <cmath>

namespace cutegen::ptx {
namespace {

constexpr int64_t kLeastBatch = 4;

// Two-sided 95% point of Student's t distribution, within 3%.
double student(double freedom) {
  const double f = 1 / freedom;
  return 1.96 + f * (2.37 + f * (2.82 + f * 5.55));
}

}  // namespace

Sampler::Sampler(int64_t total, const RunOptions& options, bool in_a_row)
    : total_(total),
      first_batch_(std::max(kLeastBatch, options.sample_ctas)),
      most_(std::max(first_batch_, options.sample_most)),
      in_a_row_(in_a_row),
      wanted_(options.sample_error),
      random_(options.sample_seed) {}

std::vector<int64_t> Sampler::next(int64_t affordable) {
  const int64_t done = int64_t(chosen_.size());
  int64_t wanted = done == 0 ? first_batch_ : std::min(done, most_ - done);
  if (done > 0) {
    if (error() <= wanted_) return {};
    wanted = std::min(wanted, affordable);
  }
  wanted = std::min(wanted, total_ - done);
  std::vector<int64_t> out;
  auto take = [&](int64_t cta) {
    if (int64_t(out.size()) < wanted && chosen_.insert(cta).second) out.push_back(cta);
  };
  for (int64_t cta = done; in_a_row_ && int64_t(out.size()) < wanted; ++cta) take(cta);
  if (done == 0) take(0), take(total_ - 1);
  if (done + wanted >= total_ || 2 * (done + wanted) > total_) {  // the sample is most of the grid
    std::vector<int64_t> left;
    for (int64_t cta = 0; cta < total_; ++cta)
      if (!chosen_.contains(cta)) left.push_back(cta);
    std::shuffle(left.begin(), left.end(), random_);
    for (int64_t cta : left) take(cta);
  }
  const int64_t parts = wanted - int64_t(out.size());
  for (int64_t part = 0; part < parts; ++part) take(draw_from(part, parts));
  while (int64_t(out.size()) < wanted) take(draw_from(0, 1));
  std::sort(out.begin(), out.end());
  return out;
}

int64_t Sampler::draw_from(int64_t part, int64_t parts) {
  const int64_t least = interior() / parts * part + interior() % parts * part / parts;
  const int64_t end = interior() / parts * (part + 1) + interior() % parts * (part + 1) / parts;
  return 1 + least + int64_t(random_() % uint64_t(std::max<int64_t>(1, end - least)));
}

std::vector<int64_t> Sampler::rest() {
  std::vector<int64_t> out;
  for (int64_t cta = 0; cta < total_; ++cta)
    if (chosen_.insert(cta).second) out.push_back(cta);
  return out;
}

std::vector<int64_t> Sampler::run_alone(const std::vector<int64_t>& ctas) {
  std::vector<int64_t> out;
  for (int64_t cta : ctas)
    if (chosen_.insert(cta).second) alone_.insert(cta), out.push_back(cta);
  std::sort(out.begin(), out.end());
  return out;
}

void Sampler::add(int64_t cta, const CtaWork& work) {
  (stands_alone(cta) ? ends_ : inside_).push_back(work);
}

double Sampler::weight() const {
  return inside_.empty() ? 0 : double(interior()) / double(inside_.size());
}

double Sampler::error_of(double CtaWork::* quantity) const {
  const double n = double(inside_.size()), all = double(interior());
  double total = 0, sum = 0, squares = 0;
  for (const CtaWork& w : ends_) total += w.*quantity;
  for (const CtaWork& w : inside_) sum += w.*quantity;
  if (n == all) return 0;
  if (n < 2) return 1;
  const double mean = sum / n;
  for (const CtaWork& w : inside_) squares += (w.*quantity - mean) * (w.*quantity - mean);
  total += mean * all;
  if (total <= 0) return 0;
  const double deviation = std::sqrt(squares / (n - 1) / n * (1 - n / all));
  return student(n - 1) * deviation * all / total;
}

double Sampler::stored_error() const {
  double mean = 0;
  for (const CtaWork& w : inside_) mean += w.stored / double(inside_.size());
  const bool more = std::any_of(ends_.begin(), ends_.end(),
                                [&](const CtaWork& w) { return w.stored > 1.01 * mean; });
  return more && interior() > int64_t(inside_.size()) ? 1 : error_of(&CtaWork::stored);
}

std::map<std::string, double> Sampler::errors() const {
  return {{"instructions", error_of(&CtaWork::instructions)},
          {"sectors", error_of(&CtaWork::sectors)},
          {"wavefronts", error_of(&CtaWork::wavefronts)}};
}

double Sampler::error() const {
  double most = 0;
  for (const auto& [name, error] : errors()) most = std::max(most, error);
  return most;
}

}  // namespace cutegen::ptx
