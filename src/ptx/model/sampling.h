// SPDX-License-Identifier: Apache-2.0
// Sampler: chooses which CTAs of a large grid run, and estimates the error of the counters of the
// whole grid.
//
// Contract: the first and the last CTA always run, and represent only themselves. A random sample
// without replacement represents all CTAs between the first and the last. The CTAs of a batch come
// from equal parts of the grid, so that the sample cannot miss half of the grid by chance. The size
// of the batches doubles until the error is small enough or the sample has the maximum number of
// CTAs. The error of a counter is half the 95% confidence interval of its total, divided by this
// total. error() is the largest of the errors of instructions, sectors and wavefronts. The
// confidence interval follows only from the spread between CTAs that ran. Like the first and the
// last CTA, each CTA that the caller adds with run_alone() represents only itself.
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
  // If `in_a_row` is set, the sample is the first CTAs of the grid, because CTAs may wait for CTAs
  // with lower indices.
  Sampler(int64_t total, const RunOptions& options, bool in_a_row = false);
  // Returns the CTAs to run next, in ascending order. The result is empty if the error is small
  // enough or the sample has its maximum size. `affordable` is the number of further CTAs that the
  // instruction budget allows.
  std::vector<int64_t> next(int64_t affordable);
  // Returns all CTAs that have not run yet.
  std::vector<int64_t> rest();
  // Returns, in ascending order, the CTAs among `ctas` that are not in the sample yet. The caller
  // must run these CTAs as the next batch.
  std::vector<int64_t> run_alone(const std::vector<int64_t>& ctas);
  std::vector<int64_t> chosen() const { return {chosen_.begin(), chosen_.end()}; }
  void add(int64_t cta, const CtaWork& work);

  bool stands_alone(int64_t cta) const {
    return cta == 0 || cta == total_ - 1 || alone_.contains(cta);
  }
  // Returns how many CTAs of the grid each randomly chosen CTA of the sample represents.
  double weight() const;
  double error() const;
  std::map<std::string, double> errors() const;
  // Returns the error of stored bytes, or 1 if a CTA that represents only itself stores more than
  // the other CTAs, because a few CTAs may then store most bytes.
  double stored_error() const;

 private:
  int64_t interior() const { return std::max<int64_t>(0, total_ - 2 - int64_t(alone_.size())); }
  // Divides the CTAs for which stands_alone() is false into `parts` equal parts, and returns a
  // random CTA of part `part`.
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
