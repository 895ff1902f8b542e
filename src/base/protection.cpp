// SPDX-License-Identifier: Apache-2.0
#include "base/protection.h"

namespace cutegen {

Names<Protection> enum_names(Protection) {
  static constexpr Name<Protection> names[] = {
      {Protection::none, "none"}, {Protection::partial, "partial"}, {Protection::full, "full"}};
  return names;
}

}  // namespace cutegen
