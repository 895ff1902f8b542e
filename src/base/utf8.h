// SPDX-License-Identifier: Apache-2.0
// Checks whether bytes are text that JSON can store.
//
// Contract: is_utf8_text() returns true for valid UTF-8 without NUL bytes, and for an empty string.
//
// Example: if (!is_utf8_text(bytes)) return user_error("the file is not UTF-8 text", path);
#pragma once

#include <string>

namespace cutegen {

bool is_utf8_text(const std::string& bytes);

}  // namespace cutegen
