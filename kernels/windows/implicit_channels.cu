// SPDX-License-Identifier: Apache-2.0
// The per-channel values for the work after the convolution.
conv.each_channel(storage, {{tile}}, [&](int c) {
  const int64_t channel = channel0 + min(c, left - 1);
{{loads}}
  typename decltype(conv)::ChannelValues kept{};
  {{call}}
  return kept;
});
