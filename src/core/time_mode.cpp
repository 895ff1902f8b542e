// SPDX-License-Identifier: Apache-2.0
#include "core/time_mode.h"

namespace cutegen {

Names<TimeMode> enum_names(TimeMode) {
  static constexpr Name<TimeMode> names[] = {{TimeMode::cold, "cold"},
                                             {TimeMode::warm, "warm"},
                                             {TimeMode::graph, "graph"},
                                             {TimeMode::call, "call"}};
  return names;
}

}  // namespace cutegen
