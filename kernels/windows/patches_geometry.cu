// SPDX-License-Identifier: Apache-2.0
struct {{geometry}} {
  using Element = {{element}};
  static constexpr int kParts = {{parts}};  // 2: pairs of half_t
  static constexpr bool kJoined = {{joined}};  // both parts of a pair lie in the same line
  static constexpr int kTileM = {{tile_m}}, kTileN = {{tile_n}}, kAcross = {{across}}, kSpatial = {{rank}};
  static constexpr int kStrip = {{strip}};  // columns of an image, if tiles join lines
  static constexpr int kPatches = {{patches}}, kStages = {{stages}};
  static constexpr int kKernel[2] = { {{kernel1}}, {{kernel2}} }, kDilation[2] = { {{dilation1}}, {{dilation2}} };
{{phases}}
{{scale}}  static constexpr int kKept = {{kept}};  // steps whose weights stay in shared memory
  static constexpr int kChannelValues = {{channel_values}};  // floats per channel, for the work after it
  static constexpr int kRowValues = {{row_values}};  // reductions over the channels
  static constexpr int kSlice = {{slice}};  // channels that pass through shared memory at a time
};
using {{engine}} = cutegen::ConvPatches<{{geometry}}>;
static_assert(sizeof({{engine}}::Storage) <= {{shared}});
