// SPDX-License-Identifier: Apache-2.0
// Tells whether bytes are text that JSON can hold.
//
// Contract: true for valid UTF-8 without NUL, and for the empty text.
//
// Example: if (!is_utf8_text(bytes)) return user_error("the file is not UTF-8 text", path);
#pragma once

#include <string>

namespace cutegen {

bool is_utf8_text(const std::string& bytes);

}  // namespace cutegen
