// SPDX-License-Identifier: Apache-2.0
// The work after the reductions over the channels, once per position.
conv.each_place({{of}}, place, [&](Place const& at) {
  if (!at.inside) return;
{{finish}}
{{stores}}
});
