// SPDX-License-Identifier: Apache-2.0
// Rows of runs (engine/suite/batch.h) as JSON and as text, for the tables of `bench` and `compare`.
//
// Contract: untrusted text is sanitized to one line. The JSON of a row has no `models` and no
// `curve`: only `compare` prints these.
//
// Example: v("name", row.name); run_row_fields(v, row);
#pragma once

#include "base/words.h"
#include "engine/suite/batch.h"

namespace cutegen::engine {

void run_row_fields(Fields& v, RunRow& row);

}  // namespace cutegen::engine
