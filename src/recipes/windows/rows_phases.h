// SPDX-License-Identifier: Apache-2.0
// The ordinary convolutions into which a convolution by rows (window_rows.h) divides a transposed
// convolution.
//
// Contract: rows_window() returns the convolution that the kernel computes. A transposed
// convolution of stride 1 is an ordinary convolution with reversed filters, so its window has other
// padding. A transposed convolution with stride s on an axis is s ordinary convolutions, its phases
// (cutegen/conv_patches.cuh): the window has stride 1 and the union of the filter taps of all
// phases. If the kernel does not support a transposed convolution, rows_window() returns its window
// unchanged. rows_in_pairs() returns whether the kernel multiplies pairs of half-precision numbers,
// which is as accurate as float32. most_columns() returns how many columns a tile may have: the
// sums of more columns would not fit in registers. rows_phases() returns the number of phases on
// each of three axes. rows_spread() returns the number of phases of the last axis that a tile has:
// all, or one if a tile with all phases would not have the channels over which the stage reduces.
// tile_phases() returns the number of phases on each axis that have tiles of their own, and
// phase_taps() the filter taps of the window that such a phase has (tap i is bit i).
// put_phase_texts() writes those texts of the kernel that depend on the phases; `t` already has the
// words `weight` and `weight_type`, and `pairs` is the value of kPairs.
//
// Example: if (count_of(rows_phases(fused)) > 1) ...
#pragma once

#include <array>
#include <map>
#include <string>

#include "recipes/nest/nest.h"

namespace cutegen::recipes {

using Phases = std::array<int64_t, 3>;

Window rows_window(const Fused& fused);
Phases rows_phases(const Fused& fused);
bool rows_in_pairs(const Fused& fused);
int64_t most_columns(const Fused& fused);
int64_t rows_spread(const Fused& fused);
Phases tile_phases(const Fused& fused);
int64_t count_of(const Phases& phases);
uint32_t phase_taps(const Fused& fused, int64_t phase);
void put_phase_texts(std::map<std::string, std::string>& t, const Fused& fused, int64_t tile_n,
                     const std::string& pairs);

}  // namespace cutegen::recipes
