// SPDX-License-Identifier: Apache-2.0
// The prelude of sources that use CuTe. The compile server parses these headers once for all sources.
#pragma once

#include <cutegen/prelude.cuh>
#include <cute/tensor.hpp>
