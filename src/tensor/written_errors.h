// SPDX-License-Identifier: Apache-2.0
// WrittenErrors: judges an output as a whole after a run in which the program wrote only some
// elements, and may have written the same element several times.
//
// Contract: if the program wrote an element several times, the element counts once, with its mean
// error, because the errors of the writes are not independent. The limits for RMS and bias follow
// from the reference errors of the written elements or of all elements, whichever are larger,
// because a few elements may be accurate by chance. If the program wrote fewer than kLeastWritten
// elements, judgement() has no limits. The page docs/official_shape.md gives the reasons.
//
// Example: WrittenErrors w(expected); w.add(i, value); if (!w.judgement().passes()) ...
#pragma once

#include <vector>

#include "tensor/compare.h"

namespace cutegen {

class WrittenErrors {
 public:
  // 64 independent errors determine their root mean square to within 9%. If a matrix product has a
  // large inner dimension, a simulated run tests only about a hundred of its elements.
  static constexpr int64_t kLeastWritten = 64;

  explicit WrittenErrors(const Expected& expected) : e_(expected), of_(expected.truth.size()) {}
  void add(size_t element, double value);
  // Returns the RMS error, the bias and their limits, but no results for single elements.
  Judgement judgement() const;

 private:
  struct Errors {
    double sum = 0, squares = 0;
    int64_t count = 0;
  };
  const Expected& e_;
  std::vector<Errors> of_;  // by element
};

}  // namespace cutegen
