// SPDX-License-Identifier: Apache-2.0
// Includes the headers for kernel sources that use CuTe's layouts and tensors, but not its atoms
// and algorithms. The compile server parses these headers once for all sources.
#pragma once

#include <cutegen/prelude.cuh>
#include <cute/tensor_impl.hpp>
