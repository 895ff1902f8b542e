// SPDX-License-Identifier: Apache-2.0
// Rows of runs (engine/suite/batch.h) as JSON and as words, for the tables of `bench` and
// `compare`.
//
// Contract: foreign text is sanitized to one line. What read_run_row reads is what run_row_json
// wrote; `models` and `curve` apart, which belong to `compare`.
//
// Example: Json json = run_row_json(row); ObjectReader r(json, "x.json"); read_run_row(r, row);
#pragma once

#include "base/words.h"
#include "engine/suite/batch.h"

namespace cutegen::engine {

Json run_row_json(const RunRow& row);
Result<void> read_run_row(ObjectReader& r, RunRow& row);

}  // namespace cutegen::engine
