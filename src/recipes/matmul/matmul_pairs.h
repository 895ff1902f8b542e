// SPDX-License-Identifier: Apache-2.0
// Float32 products through pairs of half-precision values (cutegen/gemm_wgmma_pairs.cuh): when a
// product may use them, what they cost, and the kernels and buffers that they add to a program.
//
// Contract: if the parameter `by_halves` is 1, a stage has three parts: split_part(), the product
// of the pairs, and the product of floats. split_part() has two kernels: `range` finds the largest
// magnitudes, and `split` writes the pairs. The word control[0] in global memory decides which of
// the products computes the results: it is 0 if the pairs are as accurate as float32.
//
// In the math mode tf32, the program stores and multiplies only the high part of each pair, and
// does not need `range`. Half precision rounds like tf32, and the tensor cores multiply
// half-precision values twice as fast.
//
// Example: part.earlier = {split_part(task, c, params, label), pairs};
#pragma once

#include <map>
#include <string>

#include "recipes/nest/contraction.h"
#include "recipes/text/program_part.h"

namespace cutegen::recipes {

// Returns whether a product has the form that pairs need.
bool pairs_apply(const Contraction& c);
// Returns whether the parameters choose pairs.
bool by_halves(const Json& params);
bool pairs_legal(const Contraction& c, const Json& params);
int64_t pairs_shared(const Contraction& c, const Json& params);  // bytes
// Returns whether the cost model estimates that pairs are faster.
bool pairs_pay(const Contraction& c);
// Sets the parameters to the choice of the cost model.
void choose_pairs(const Contraction& c, Json& params);
// Returns the label of the parts with pairs, which makes their names differ from the names in the
// product of floats.
Label pairs_label(const Label& label);
// Returns the parameters of the product that runs if pairs are too inaccurate.
Json without_pairs(const Contraction& c, Json params, const Label& label);

ProgramPart split_part(const Task& task, const Contraction& c, const Label& label);
// Adds the symbols, buffers and tensor maps of the pairs to a part that already has the symbols of
// the sizes.
void add_pairs(const Contraction& c, const Label& label, ProgramPart& part);
std::string pairs_type(const Contraction& c);
// Fills the placeholders of kernels/matmul/persistent.cu.
void pairs_text(const Contraction& c, const Json& params, std::map<std::string, std::string>& t);
// A program with pairs has two kernels for one product: one multiplies pairs, the other multiplies
// floats. Returns the text with which a kernel ends early if control[0] says that the other kernel
// computes the product. If `pairs` is true, the text is for the kernel that multiplies pairs.
// Returns "" if the program has only one kernel for the product.
std::string gate_text(const Json& params, bool pairs);

}  // namespace cutegen::recipes
