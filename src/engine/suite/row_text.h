// SPDX-License-Identifier: Apache-2.0
// Converts a RunRow (engine/suite/batch.h) to JSON and back, for the tables of `bench` and
// `compare`.
//
// Contract: run_row_fields() omits `models` and `curve`, because only `compare` stores these
// fields.
//
// Example: v("name", row.name); run_row_fields(v, row);
#pragma once

#include "base/words.h"
#include "engine/suite/batch.h"

namespace cutegen::engine {

void run_row_fields(Fields& v, RunRow& row);

}  // namespace cutegen::engine
