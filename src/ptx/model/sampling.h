// SPDX-License-Identifier: Apache-2.0
// Sampler: chooses the CTAs of a large grid to run, and estimates the error of the grid's totals.
//
// Contract: the first and the last CTA always run, and their counts are not scaled. A random sample
// of the others, without replacement, represents all others. The CTAs of a batch come from equal
// parts of the grid, so that the sample cannot miss half of the grid by chance. Batches double
// until the error is small enough, or the sample has its most CTAs. The error is half the 95%
// confidence interval of the grid's total, divided by that total: the largest of the errors of
// instructions, sectors and wavefronts. It follows only from the spread between CTAs that ran.
// CTAs that the caller adds with run_alone() represent only themselves, like the first and the
// last.
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
  // in_a_row: takes the first CTAs of the grid, because a CTA may wait for earlier ones.
  Sampler(int64_t total, const RunOptions& options, bool in_a_row = false);
  // The CTAs to run next, in ascending order. Empty if the sample is good enough or complete.
  // affordable: how many more the budget allows.
  std::vector<int64_t> next(int64_t affordable);
  // All CTAs that have not run yet.
  std::vector<int64_t> rest();
  // The given CTAs that were not chosen yet, in ascending order: the next batch.
  std::vector<int64_t> run_alone(const std::vector<int64_t>& ctas);
  std::vector<int64_t> chosen() const { return {chosen_.begin(), chosen_.end()}; }
  void add(int64_t cta, const CtaWork& work);

  bool stands_alone(int64_t cta) const {
    return cta == 0 || cta == total_ - 1 || alone_.contains(cta);
  }
  // The number of CTAs that one sampled CTA represents, if it does not stand alone.
  double weight() const;
  double error() const;
  std::map<std::string, double> errors() const;

 private:
  int64_t interior() const { return std::max<int64_t>(0, total_ - 2 - int64_t(alone_.size())); }
  // A random CTA of part `part` of the interior, which has `parts` equal parts.
  int64_t draw_from(int64_t part, int64_t parts);
  double error_of(double CtaWork::* quantity) const;

  int64_t total_, first_batch_, most_;
  bool in_a_row_;
  double wanted_;
  std::mt19937_64 random_;
  std::unordered_set<int64_t> chosen_, alone_;
  std::vector<CtaWork> ends_, inside_;
};

}  // namespace cutegen::ptx
