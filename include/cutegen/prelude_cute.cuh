// SPDX-License-Identifier: Apache-2.0
// Includes the headers that kernel sources with CuTe need. The compile server parses these headers
// once for all sources.
#pragma once

#include <cutegen/prelude.cuh>
#include <cute/tensor.hpp>
