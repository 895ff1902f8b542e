// SPDX-License-Identifier: Apache-2.0
// Names of the input families (input distributions), as in JSON. The torch worker draws the input
// values.
//
// Example: if (set.family == family::made) count_compat(set);
#pragma once

namespace cutegen::eval::family {

inline constexpr const char *made = "made",  // inputs from the task's own get_inputs()
    *is_signed = "signed", *heavy = "heavy", *outliers = "outliers", *special = "special",
                            *extremes = "extremes",
                            // Inputs of a test that a model proposed, in the test's ranges.
                                *ranged = "ranged";

}  // namespace cutegen::eval::family
