// SPDX-License-Identifier: Apache-2.0
{{rows}}
// The values that the work after the convolution reads at each position.
struct Reads {
{{members}}
};
auto read = [&](auto c, Place const& at) {
  Reads more{};
  const bool inside = c < left && at.inside;
{{reads}}
  return more;
};
struct Results {
{{results}}
};
auto value = [&](float window, Reads const& more, auto c, {{Place}} const& at) {
{{nearest}}
  Results result;
{{finish}}
  return result;
};
auto store = [&](Results const& result, auto c, Place const& at) {
  const bool inside = c < left && at.inside;
{{stores}}
};
{{pairs}}
conv.write({{of}}, {{place}}, read, value, {{store}});
