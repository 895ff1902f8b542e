// SPDX-License-Identifier: Apache-2.0
// Writes the source of the matmul kernels.
//
// Contract: matmul_kernel() returns the source and the arguments for the plan. The arguments are
// strides and sizes, with the names and in the order of the kernel's parameters.
//
// Example: MatmulKernel k = matmul_kernel(task, c, params, label); k.source
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

struct MatmulKernel {
  std::string source;
  // Pairs of a parameter and its value (an expression of the launch plan), for the kernel `matmul`
  // and for the kernel `combine`, which adds the partial results of a split.
  std::vector<std::pair<std::string, std::string>> numbers;
  std::vector<std::pair<std::string, std::string>> numbers_combine;
  std::vector<std::string> tensors;  // identifiers, in the parameters' order
  std::vector<std::string> tensors_combine;
  // Plan expressions that say whether the kernel can access A, B and the output in vectors.
  std::string vector_a, vector_b, vector_out;
};

// How a kernel multiplies.
// - simt uses the CUDA cores.
// - mma uses mma.sync.
// - wgmma uses wgmma on 16-bit elements.
// - wgmma_fp32 uses wgmma on floats, in three tf32 products with float32 accuracy or in one tf32
//   product.
// - wgmma_pairs uses wgmma on floats that another kernel has split into pairs of 16-bit values.
// - stream uses mma.sync on weights that bypass shared memory, for products with few rows.
enum class MatmulEngine { simt, mma, wgmma, wgmma_fp32, wgmma_pairs, stream };
MatmulEngine engine_of(const Contraction& c, const Json& params);
// Returns whether the kernel is persistent: it multiplies with wgmma, and as many CTAs as the GPU
// holds compute all tiles.
bool persistent(MatmulEngine engine);
// Returns whether two warpgroups compute tiles alternately (only with MatmulEngine::wgmma).
bool ping_pong(const Json& params);
// Returns whether the CTAs that share the depth of a tile are a cluster, which adds their parts.
// Otherwise, a second kernel adds the parts of a split product.
bool sums_in_cluster(const Contraction& c, const Json& params);
// Returns how many tf32 products of wgmma_fp32 replace one product of floats.
int products_of(const Contraction& c);
// Returns the products of a joined kernel (nest/joined.h) in order, or only `c` if `c` is not
// joined.
std::vector<const Contraction*> parts_of(const Contraction& c);
std::string name_of(const Contraction& c, const Factor& factor);
// Returns whether a wgmma_fp32 kernel exchanges the factors: it reads A from shared memory, as two
// tf32 values for each float, and B from registers.
bool turned(const Contraction& c);
// Returns the C++ type of the factors: "float", "tfloat32_t", "half_t" or "bfloat16_t".
std::string element_type(const Contraction& c, const Json& params);
// Returns the bytes of an element in the task's math mode.
int64_t bytes_of_element(const Contraction& c);
// Returns whether wgmma multiplies the elements as they are in memory: 16-bit elements, or floats
// that an earlier kernel has rounded to tf32.
bool multiplies_elements(const Contraction& c);
MatmulKernel matmul_kernel(const Task& task, const Contraction& c, const Json& params,
                           const Label& label);

}  // namespace cutegen::recipes
