// SPDX-License-Identifier: Apache-2.0
// Scans a source before a compile server compiles it: finds obvious errors, and says how much of
// CuTe the source includes.
//
// Contract: scan_source() never fails. `problem` is empty, or describes one error in the format of
// CompileResult::digest.
//
// Example:
//   SourceScan s = scan_source(request, includes); if (!s.problem.empty()) ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "toolchain/toolchain.h"

namespace cutegen::toolchain {

inline constexpr size_t kMostSourceBytes = size_t{1} << 20;

// How much of CuTe a source includes, directly or through a cutegen/ header. A source that includes
// only CuTe's layouts and tensors compiles faster than a source that includes all of CuTe, with the
// atoms of every architecture.
enum class CuteUse { none, tensors, all };

struct SourceScan {
  CuteUse cute = CuteUse::none;
  std::string problem;
};
// Returns the header that a compile server parses in advance for sources with the CuteUse `use`.
const char* prefix_header(CuteUse use);

SourceScan scan_source(const CompileRequest& request,
                       const std::vector<std::filesystem::path>& include_dirs);

// The operand of an #include or #embed line, and the line number (from 1). The function
// include_lines() ignores such lines in comments and string literals.
struct IncludeLine {
  int line = 0;
  std::string path;
};
std::vector<IncludeLine> include_lines(const std::string& source);

// Replaces comments by blanks, but keeps line breaks, so that line numbers do not change.
std::string without_comments(const std::string& source);

// Returns the text to compile: #define lines, then a #line directive with the source's name, and
// then the source. Because of the #line, error messages name the source and the source's line
// numbers.
std::string full_source(const CompileRequest& request);

}  // namespace cutegen::toolchain
