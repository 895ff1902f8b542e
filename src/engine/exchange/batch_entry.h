// SPDX-License-Identifier: Apache-2.0
// An entry of a judged batch (`cutegen eval --batch IN --out OUT`): the verdict in the file
// OUT/NAME.json, and the program in the folder IN/NAME.
//
// Contract: read_batch_entry() checks that the files are not too large, and that the verdict's file
// matches the JSON schema, has the entry's name, and belongs to the program. Errors name the file.
//
// Example: CG_TRY(BatchEntry e, read_batch_entry("in", "out", "c3"));
#pragma once

#include <filesystem>

#include "core/candidate.h"
#include "core/verdict.h"

namespace cutegen::engine {

inline constexpr const char* kEntrySchema = "cutegen.entry.v1";

struct BatchEntry {
  std::string name, sha256;  // sha256: hash of program and verdict together
  KernelProgram program;
  Verdict verdict;
};
Result<BatchEntry> read_batch_entry(const std::filesystem::path& programs,
                                    const std::filesystem::path& verdicts, const std::string& name);
// Returns the sorted names of all entries in OUT.
Result<std::vector<std::string>> batch_entries(const std::filesystem::path& verdicts);

}  // namespace cutegen::engine
