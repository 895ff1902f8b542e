// SPDX-License-Identifier: Apache-2.0
// WrittenErrors: judges an output as a whole if the program wrote only some of its elements, and
// some of these several times.
//
// Contract: an element that was written several times (in repetitions of the same values) counts
// once, with its mean error, because repeated errors are not independent. The limits follow from
// the reference errors of the written elements, or of all elements if these are larger, because a
// few elements may be accurate by chance. With fewer than kLeastWritten elements, there is no
// limit. docs/evaluation.md: "The official shape on the simulator".
//
// Example: WrittenErrors w(expected); w.add(i, value); if (!w.judgement().passes()) ...
#pragma once

#include <vector>

#include "tensor/compare.h"

namespace cutegen {

class WrittenErrors {
 public:
  // 64 independent errors determine their root mean square to 9%. Excerpts of products with a large
  // K have about a hundred elements.
  static constexpr int64_t kLeastWritten = 64;

  explicit WrittenErrors(const Expected& expected) : e_(expected), of_(expected.truth.size()) {}
  void add(size_t element, double value);
  // Has the RMS error, the bias and their limits; is_wrong is empty.
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
