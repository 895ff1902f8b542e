// SPDX-License-Identifier: Apache-2.0
// The prelude of sources that use CuTe: its tensor headers are parsed once for all of them.
#pragma once

#include <cutegen/prelude.cuh>
#include <cute/tensor.hpp>
