// SPDX-License-Identifier: Apache-2.0
// Stores two neighbouring positions at once.
auto store_pair = [&](Results const& result, Results const& next, auto c, Place const& at) {
  const bool inside = c < left && at.inside;
{{pair_stores}}
};
