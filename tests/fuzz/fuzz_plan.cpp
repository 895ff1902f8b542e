// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as plan.json are refused with a user error, or are a plan whose
// canonical form reads back as the same plan.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/json_place.h"
#include "core/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  std::string text(reinterpret_cast<const char*>(data), size);
  auto plan = parse_plan(text);
  if (!plan) {
    CG_ASSERT(plan.error().kind == ErrorKind::user);
    (void)with_place(plan.error(), text);
    return 0;
  }
  Json canonical = to_json(*plan);
  auto again = plan_from_json(canonical);
  CG_ASSERT(again.has_value());
  CG_ASSERT(to_json(*again) == canonical);
  (void)check_plan(*plan, Task{});
  return 0;
}
