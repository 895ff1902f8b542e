// SPDX-License-Identifier: Apache-2.0
// An entry of a judged batch: the verdict of OUT/NAME.json with the program of IN/NAME.
//
// Contract: the reader checks sizes, schema, that the entry's name is the file's name, and that the
// program in IN is the one that was judged. Errors name the file.
//
// Example: CG_TRY(BatchEntry e, read_batch_entry("in", "out", "c3"));
#pragma once

#include <filesystem>

#include "core/candidate.h"
#include "core/verdict.h"

namespace cutegen::engine {

inline constexpr const char* kEntrySchema = "cutegen.entry.v1";

struct BatchEntry {
  std::string name, sha256;  // sha256: of program and verdict together
  KernelProgram program;
  Verdict verdict;
};
Result<BatchEntry> read_batch_entry(const std::filesystem::path& programs,
                                    const std::filesystem::path& verdicts, const std::string& name);
// Names of the entries in OUT, sorted.
Result<std::vector<std::string>> batch_entries(const std::filesystem::path& verdicts);

}  // namespace cutegen::engine
