// SPDX-License-Identifier: Apache-2.0
// Sampler: which CTAs of a large grid are run, and how far the sums may be off.
//
// Contract: the first and the last CTA are always run and count as themselves; the interior is
// sampled at random without replacement and stands for all of it. Batches double until the error is
// at most the one wanted, or the most CTAs are reached. The error is half the 95% confidence
// interval of the grid's total, over that total, the largest of instructions, sectors and
// wavefronts: it knows only the spread between CTAs that ran.
//
// Example: while (!(batch = sampler.next(affordable)).empty()) { run them; sampler.add(cta, work);
// }
#pragma once

#include <map>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "ptx/model/counting.h"

namespace cutegen::ptx {

class Sampler {
 public:
  // in_a_row: the first CTAs of the grid instead, since each may wait for those before it.
  Sampler(int64_t total, const RunOptions& options, bool in_a_row = false);
  // The CTAs to run next, in ascending order; none when the sample is good enough or complete.
  // `affordable`: how many more the budget allows.
  std::vector<int64_t> next(int64_t affordable);
  // All CTAs that have not run yet.
  std::vector<int64_t> rest();
  void add(int64_t cta, const CtaWork& work);

  bool is_end(int64_t cta) const { return cta == 0 || cta == total_ - 1; }
  // What one sampled interior CTA stands for.
  double weight() const;
  double error() const;
  std::map<std::string, double> errors() const;

 private:
  int64_t interior() const { return std::max<int64_t>(0, total_ - 2); }
  double error_of(double CtaWork::* quantity) const;

  int64_t total_, first_batch_, most_;
  bool in_a_row_;
  double wanted_;
  std::mt19937_64 random_;
  std::unordered_set<int64_t> chosen_;
  std::vector<CtaWork> ends_, inside_;
};

}  // namespace cutegen::ptx
