// SPDX-License-Identifier: Apache-2.0
// The prelude of sources that use CuTe's layouts and tensors but none of its atoms and algorithms.
#pragma once

#include <cutegen/prelude.cuh>
#include <cute/tensor_impl.hpp>
