// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include "base/json.h"

namespace cutegen {

bool is_utf8_text(const std::string& bytes) {
  if (bytes.find('\0') != std::string::npos) return false;
  try {
    (void)Json(bytes).dump();
  } catch (const Json::exception&) {
    return false;
  }
  return true;
}

}  // namespace cutegen
