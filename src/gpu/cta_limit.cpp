// SPDX-License-Identifier: Apache-2.0
#include "gpu/cta_limit.h"

namespace cutegen {

Names<CtaLimit> enum_names(CtaLimit) {
  static constexpr Name<CtaLimit> names[] = {{CtaLimit::unknown, ""},
                                             {CtaLimit::blocks, "blocks"},
                                             {CtaLimit::grid, "grid"},
                                             {CtaLimit::registers, "registers"},
                                             {CtaLimit::shared_memory, "shared memory"},
                                             {CtaLimit::threads, "threads"}};
  return names;
}

}  // namespace cutegen
