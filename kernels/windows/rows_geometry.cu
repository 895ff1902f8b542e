// SPDX-License-Identifier: Apache-2.0
struct {{geometry}} {
  using Element = {{element}};
  static constexpr int kTileM = 128, kTileN = {{tile_n}}, kStages = {{stages}}, kSpatial = {{rank}};
  static constexpr int kPhases = 1, kSpread = 1;
  static constexpr bool kPairs = false;
  static constexpr int kKept = {{kept}};  // steps whose weights stay in shared memory
  static constexpr int kChannelValues = {{channel_values}};  // floats per channel, for the work after it
  static constexpr int kRowValues = {{row_values}};  // reductions over the channels
  static constexpr int kSlice = {{slice}};  // channels that pass through shared memory at a time
};
using {{engine}} = cutegen::ConvRows<{{geometry}}>;
static_assert(sizeof({{engine}}::Storage) <= {{shared}});
