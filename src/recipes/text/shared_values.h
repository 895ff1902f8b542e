// SPDX-License-Identifier: Apache-2.0
// Shared values: values that are the same for all results of a vector (neighbouring results that a
// thread computes together), such as the factor of a batch norm for a vector of pixels.
//
// Contract: find_shared_values() takes the leaves that have the same element for all results of a
// vector. The other functions write a device function that computes the shared values once for a
// vector, and the call of this device function. The arguments of the call are the leaves that the
// function reads, the sizes and the shared values.
//
// Example: compute_shared(r_variance[0], r_weight[0], factor); then compute(product[v], factor)
#pragma once

#include <set>
#include <string>
#include <vector>

#include "recipes/text/kernel_text.h"

namespace cutegen::recipes {

struct SharedValues {
  std::set<int> once;     // instructions that a kernel computes once for a vector
  std::vector<int> read;  // instructions in `once` that results or other instructions read
  bool empty() const { return read.empty(); }
};

SharedValues find_shared_values(const Fused& fused, const Code& code,
                                const std::vector<int>& results, const std::set<int>& leaves);
// Returns the instructions from which the function for one result computes. If `once` is set,
// returns the instructions from which the function for shared values computes.
std::set<int> inputs_of_results(const Fused& fused, const Code& code, const SharedValues& shared,
                                const std::vector<int>& results, bool once);
// Returns the type in which a kernel keeps an instruction's value.
const char* kept_type(const Inst& inst);
// `params` and `values` are the declarations and the values of the leaves.
std::string shared_function(const std::string& function, const Fused& fused, const Code& code,
                            const SharedValues& shared, std::vector<std::string> params);
std::string shared_call(const std::string& function, const Fused& fused, const Code& code,
                        const SharedValues& shared, std::vector<std::string> values);

}  // namespace cutegen::recipes
