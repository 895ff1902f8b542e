// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as JSON are refused, or have one canonical form, which parses to the
// same value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  auto value = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!value) return 0;
  std::string text = canonical_json(*value);
  auto again = parse_json(text, "fuzz");
  if (!again || canonical_json(*again) != text) std::abort();
  return 0;
}
