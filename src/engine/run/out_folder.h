// SPDX-License-Identifier: Apache-2.0
// The folder with the best program so far: plan.json, its sources, verdict.json and, if it was
// certified, certificate.json.
//
// Contract: the folder is replaced in one step, so a reader (or a crash) sees either the old
// program or the new one. A folder that contains anything else is an error before the run starts.
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
