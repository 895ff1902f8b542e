// SPDX-License-Identifier: Apache-2.0
// Scans: cumulative sums, products, maxima and minima, with their positions, and logcumsumexp along
// one axis, in one form.
//
// Contract: normalize_scans() replaces each by a node cutegen.scan(x, axis, kind, reversed,
// exclusive). flip(scan(flip(x))) becomes a scan from the end. cat of the neutral element and the
// scan of all elements but the last becomes an exclusive scan. Positions are a scan of their own. A
// scan that converts its result to another kind of number stays as it is. find_scan() reads a node.
//
// Example: aten.cumsum(x, 1) -> cutegen.scan(x, 1, "sum", false, false)
#pragma once

#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kScan = "cutegen.scan";

// log_sum: logcumsumexp. max_place, min_place: the positions of the values.
enum class ScanKind { sum, product, max, min, log_sum, max_place, min_place, integer_sum };

struct Scan {
  ScanKind kind = ScanKind::sum;
  bool reversed = false;   // begins at the last element
  bool exclusive = false;  // an element's own value is not part of its result
  bool gives_integers() const { return kind >= ScanKind::max_place; }
  // Whether a running result has 64 bits.
  bool wide() const { return kind >= ScanKind::log_sum; }
  bool operator==(const Scan&) const = default;
};

Graph normalize_scans(Graph graph);
// Nothing if the node is not a cutegen.scan.
std::optional<Scan> find_scan(const Node& node);

}  // namespace cutegen::recipes
