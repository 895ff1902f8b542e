// SPDX-License-Identifier: Apache-2.0
// RowStatus: the status of a row in the tables of `bench`, `compare` and `eval --batch`.
//
// Contract: the values of RowStatus include all statuses of a verdict. Do not change the names,
// because tables in JSON and CSV contain them.
//
// Example: row.status = row_status(verdict.status); fmt::print("{}", to_string(row.status));
#pragma once

#include <array>

#include "base/json.h"
#include "core/verdict.h"

namespace cutegen::engine {

enum class RowStatus {
  correct,
  no_recipe,
  failed,
  rejected,
  unsupported,
  aborted,
  error,  // the evaluator could not judge the task or the entry
  interrupted,
  pending,
};
inline constexpr std::array kRowStatuses{
    RowStatus::correct,  RowStatus::no_recipe,   RowStatus::failed,
    RowStatus::rejected, RowStatus::unsupported, RowStatus::aborted,
    RowStatus::error,    RowStatus::interrupted, RowStatus::pending};

using cutegen::to_string;
Names<RowStatus> enum_names(RowStatus);
RowStatus row_status(Status status);

}  // namespace cutegen::engine
