// SPDX-License-Identifier: Apache-2.0
// Writes the out folder, which has the best program so far: plan.json, the sources, verdict.json
// and, if the program was certified, certificate.json.
//
// Contract: save_out_folder() replaces the folder in one step. Even after a crash, the folder
// contains either the old or the new program as a whole. Before a run starts, call
// check_out_folder(), which returns an error if the folder contains a file that is not part of a
// kernel program.
//
// Example: CG_CHECK(check_out_folder("out")); CG_CHECK(save_out_folder("out", candidate, verdict));
#pragma once

#include <filesystem>

#include "core/candidate.h"
#include "core/certificate.h"

namespace cutegen::engine {

Result<void> check_out_folder(const std::filesystem::path& out);
Result<void> save_out_folder(const std::filesystem::path& out, const Candidate& candidate,
                             const Verdict& verdict, const Certificate* certificate = nullptr);

}  // namespace cutegen::engine
