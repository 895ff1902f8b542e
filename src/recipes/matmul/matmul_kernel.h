// SPDX-License-Identifier: Apache-2.0
// The text of the matmul kernels.
//
// Contract: matmul_kernel() returns the source and the arguments of its plan: strides and sizes
// under the names of the kernel's parameters, in order.
//
// Example: MatmulKernel k = matmul_kernel(task, c, params, label); k.source
#pragma once

#include "recipes/nest/contraction.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

struct MatmulKernel {
  std::string source;
  // (parameter of the kernel `matmul`, expression).
  std::vector<std::pair<std::string, std::string>> numbers;
  std::vector<std::pair<std::string, std::string>> numbers_combine;
  std::vector<std::string> tensors;  // identifiers, in the order of the kernels' parameters
  std::vector<std::string> tensors_combine;
  // Expressions that are true if vector accesses are possible.
  std::string vector_a, vector_b, vector_out;
};

// The instructions that multiply: the CUDA cores, mma.sync, wgmma on 16-bit elements, wgmma on
// floats (three products with float32 accuracy, or one in tf32), or mma.sync on weights that no
// shared memory holds (few rows).
enum class MatmulEngine { simt, mma, wgmma, wgmma_fp32, stream };
MatmulEngine engine_of(const Contraction& c, const Json& params);
// Whether two warpgroups take tiles in turn (wgmma).
bool ping_pong(const Json& params);
// For wgmma_fp32: how many tf32 products replace one product of floats.
int products_of(const Contraction& c);
// The joined products in order; one product has one part.
std::vector<const Contraction*> parts_of(const Contraction& c);
// The identifier of a factor's tensor.
std::string name_of(const Contraction& c, const Factor& factor);
// Whether wgmma_fp32 reads A from shared memory, split in two parts, and B from registers.
bool turned(const Contraction& c);
// The type of the operands as the instruction takes them: "float", "tfloat32_t", "half_t",
// "bfloat16_t".
std::string element_type(const Contraction& c, const Json& params);
// Bytes of an element in the task's math mode.
int64_t bytes_of_element(const Contraction& c);
MatmulKernel matmul_kernel(const Task& task, const Contraction& c, const Json& params,
                           const Label& label);

}  // namespace cutegen::recipes
