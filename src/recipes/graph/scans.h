// SPDX-License-Identifier: Apache-2.0
// Scans: cumulative sums, products, maxima and minima along one axis, in one form.
//
// Contract: normalize_scans() replaces each by a node cutegen.scan(x, axis, kind, reversed,
// exclusive). flip(scan(flip(x))) becomes a scan from the end. cat of the neutral element and the
// scan of all elements but the last becomes an exclusive scan. A scan that also returns positions,
// or converts its result, stays as it is. find_scan() reads such a node.
//
// Example: aten.cumsum(x, 1) -> cutegen.scan(x, 1, "sum", false, false)
#pragma once

#include <optional>
#include <string>

#include "core/graph.h"

namespace cutegen::recipes {

inline constexpr const char* kScan = "cutegen.scan";

enum class ScanKind { sum, product, max, min };

struct Scan {
  ScanKind kind = ScanKind::sum;
  bool reversed = false;   // begins at the last element
  bool exclusive = false;  // an element's own value is not part of its result
  bool operator==(const Scan&) const = default;
};

Graph normalize_scans(Graph graph);
// Nothing if the node is not a cutegen.scan.
std::optional<Scan> find_scan(const Node& node);

}  // namespace cutegen::recipes
