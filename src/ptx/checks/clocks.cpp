// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/clocks.h"

#include <algorithm>

namespace cutegen::ptx {

void Clocks::begin() {
  label_ = last_ = 1;
  if (!vector_) return;
  own_.fill(1);
  seen_ = {};
  barriers_ = {};
  places_.clear();
}

void Clocks::give(int warp, Labels& to) {
  const size_t w = size_t(warp);
  for (size_t u = 0; u < size_t(warps_); ++u) to[u] = std::max(to[u], seen_[w][u]);
  to[w] = own_[w];
  own_[w] = ++last_;
}

void Clocks::take(int warp, const Labels& from) {
  Labels& seen = seen_[size_t(warp)];
  for (size_t u = 0; u < size_t(warps_); ++u) seen[u] = std::max(seen[u], from[u]);
}

}  // namespace cutegen::ptx
