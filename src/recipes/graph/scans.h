// SPDX-License-Identifier: Apache-2.0
// Scans: brings cumulative sums, products, maxima and minima (with their positions) and
// logcumsumexp along one axis into a common form.
//
// Contract: normalize_scans() replaces each scan operator by a node cutegen.scan(x, axis, kind,
// reversed, exclusive). flip(scan(flip(x))) becomes a scan that begins at the last element. A cat
// of the neutral element and the scan of all elements but the last becomes an exclusive scan. An
// operator that returns values and positions becomes two scans. normalize_scans() does not replace
// a scan of floats that also converts its result to another dtype. find_scan() reads a cutegen.scan
// node.
//
// Example: aten.cumsum(x, 1) -> cutegen.scan(x, 1, "sum", false, false)
#pragma once

#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kScan = "cutegen.scan";

// log_sum is logcumsumexp. max_place and min_place are the positions that cummax and cummin return.
enum class ScanKind {
  sum,
  product,
  max,
  min,
  log_sum,
  max_place,
  min_place,
  integer_sum,
  integer_product,
  integer_max,
  integer_min
};

struct Scan {
  ScanKind kind = ScanKind::sum;
  bool reversed = false;   // the scan begins at the last element
  bool exclusive = false;  // the result at an element excludes this element
  bool gives_integers() const { return kind >= ScanKind::max_place; }
  bool takes_integers() const { return kind >= ScanKind::integer_sum; }
  // Returns whether the running result takes 64 bits, not 32.
  bool wide() const { return kind >= ScanKind::log_sum; }
  bool operator==(const Scan&) const = default;
};

Graph normalize_scans(Graph graph);
// Returns nullopt if the node is not a cutegen.scan.
std::optional<Scan> find_scan(const Node& node);

}  // namespace cutegen::recipes
