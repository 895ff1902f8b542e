// SPDX-License-Identifier: Apache-2.0
// Kernels for products with few rows, which stream their second factor (cutegen/gemm_stream.cuh):
// each element goes from global memory to registers, and the kernel uses it once. The factor has
// 16-bit weights, or packed weights of 8 or 4 bits.
//
// Contract: streams() returns whether a streaming kernel can compute a product; no other kernel
// reads packed weights. with_stream_shape() sets tile_k, threads and stages, which follow from the
// other parameters.
//
// Example: if (streams(c)) params = with_stream_shape(c, params);
#pragma once

#include "recipes/matmul/matmul_kernel.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {

bool streams(const Contraction& c);
std::vector<RecipeParameter> stream_parameters(const Contraction& c);
Json stream_safe(const Contraction& c);
bool stream_legal(const Contraction& c, const Json& params);
Json with_stream_shape(const Contraction& c, Json params);
int64_t stream_shared(const Contraction& c, const Json& params);
// Returns the number of weights in 16 bytes.
int64_t stream_segment(const Contraction& c);
// Returns the cost model's estimate of the kernel's time in seconds, without the launch.
double stream_seconds(const Contraction& c, const Json& params);

// Sets the placeholders of the template kernels/matmul/tiled.cu, including the declarations of the
// tensors of scales and zeros.
void stream_text(const Contraction& c, std::map<std::string, std::string>& t);
std::string stream_type(const Contraction& c, const Json& params, const Label& label);
std::vector<Operand> stream_operands(const Contraction& c);
// Returns the plan's requirements on the sizes of scales and zeros.
std::vector<std::string> stream_requirements(const Contraction& c);

}  // namespace cutegen::recipes
