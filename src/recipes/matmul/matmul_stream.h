// SPDX-License-Identifier: Apache-2.0
// Products with few rows that stream their second factor (cutegen/gemm_stream.cuh): 16-bit weights,
// and packed ones of 8 or 4 bits.
//
// Contract: streams() says whether the engine can compute a product. A product that reads packed
// weights has no other engine. with_stream_shape() sets the parameters that follow from the others.
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
// Weights in 16 bytes.
int64_t stream_segment(const Contraction& c);
// The model's time in seconds, without the launch.
double stream_seconds(const Contraction& c, const Json& params);

// The placeholders of kernels/matmul/tiled.cu, and the tensors of scales and zeros.
void stream_text(const Contraction& c, std::map<std::string, std::string>& t);
std::string stream_type(const Contraction& c, const Json& params, const Label& label);
std::vector<Operand> stream_operands(const Contraction& c);
// Conditions on the sizes of scales and zeros.
std::vector<std::string> stream_requirements(const Contraction& c);

}  // namespace cutegen::recipes
