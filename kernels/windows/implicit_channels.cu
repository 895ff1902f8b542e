// SPDX-License-Identifier: Apache-2.0
// What the work after the convolution needs of each channel.
conv.each_channel(storage, int(group * tiles_n) + tile.channels, [&](int c) {
  const int64_t channel = channel0 + min(c, left - 1);
{{loads}}
  typename decltype(conv)::ChannelValues kept{};
  {{call}}
  return kept;
});
