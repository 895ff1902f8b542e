// SPDX-License-Identifier: Apache-2.0
// Inspects a source before it is compiled: the prefix that it needs, and obvious errors.
//
// Contract: scan_source() never fails. `problem` is empty, or one error in the form of a digest.
// Example:
//   SourceScan s = scan_source(request, includes); if (!s.problem.empty()) ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "toolchain/toolchain.h"

namespace cutegen::toolchain {

inline constexpr size_t kMostSourceBytes = size_t{1} << 20;

// How much of CuTe a source includes, directly or through a cutegen/ header. Layouts and tensors
// alone compile faster than all of CuTe, which includes the atoms of every architecture.
enum class CuteUse { none, tensors, all };

struct SourceScan {
  CuteUse cute = CuteUse::none;
  std::string problem;
};
// The header that a server parses before such sources.
const char* prefix_header(CuteUse use);

SourceScan scan_source(const CompileRequest& request,
                       const std::vector<std::filesystem::path>& include_dirs);

// The operands of a source's #include and #embed lines, outside comments and strings, with their
// line numbers (from 1).
struct IncludeLine {
  int line = 0;
  std::string path;
};
std::vector<IncludeLine> include_lines(const std::string& source);

// Replaces comments by blanks and keeps line ends.
std::string without_comments(const std::string& source);

// The text that the compiler sees: #define lines, then the source under its own name and line
// numbers.
std::string full_source(const CompileRequest& request);

}  // namespace cutegen::toolchain
