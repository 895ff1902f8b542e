// SPDX-License-Identifier: Apache-2.0
// The values that the work after the convolution reads at each position.
struct Reads {
{{members}}
};
auto read = [&](int c, Place const& at) {
  Reads more{};
  if (c < left && at.inside) {
{{reads}}
  }
  return more;
};
struct Results {
{{results}}
};
auto value = [&](float window, Reads const& more, int c, Place const& at) {
{{nearest}}
  Results result;
{{finish}}
  return result;
};
conv.write(tile, place, read, value, [&](Results const& result, int c, Place const& at) {
  if (c >= left || !at.inside) return;
{{stores}}
});
