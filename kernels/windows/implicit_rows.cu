// SPDX-License-Identifier: Apache-2.0
// What follows the reductions over the channels, once for each place.
conv.each_place(place, [&](Place const& at) {
  if (!at.inside) return;
{{finish}}
{{stores}}
});
