// SPDX-License-Identifier: Apache-2.0
// Text of kernels: fills templates, and writes the instructions of a loop nest (fuse/fused.h) as
// C++.
//
// Contract: fill() replaces every {{name}} in a template of kernels/ by its value. It is an
// internal error if a name occurs only in `values`, or only in the template. `Code` gives each
// instruction an identifier and writes statements in evaluation order.
//
// Example: fill("kernels/elementwise/flat.cu", {{"threads", "256"}, ...})
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "recipes/fuse/fused.h"
#include "recipes/graph/names.h"

namespace cutegen::recipes {
const std::map<std::string, std::string>& recipe_templates();  // maps a template's path to its text
}

namespace cutegen::recipes {

std::string fill(const std::string& path, const std::map<std::string, std::string>& values);
// Writes "make_shape(a, b)", but for a single item only "a", so that the compiler instantiates
// fewer templates.
std::string tuple_of(const std::string& maker, const std::vector<std::string>& items);
std::string indent(const std::string& text, int spaces);

class Code {
 public:
  explicit Code(const Fused& fused);

  const std::string& id(int inst) const { return ids_[size_t(inst)]; }
  // Returns a unique name for a variable that is not an instruction's value.
  std::string word(const std::string& wanted) { return names_.unique(wanted); }
  // Returns the text that reads an instruction's value. In a column kernel, a thread has kVector
  // columns, and each column has its own mean, so the text for the mean is "mean[v]".
  std::string use(int inst) const;
  void index_rows(bool on) { index_rows_ = on; }
  // Returns the C++ expression that computes an instruction from its inputs: the right side of
  // statement().
  std::string expression(int inst) const;
  // Returns the statement that computes an instruction: "const float t = ...;".
  std::string statement(int inst) const;
  // Returns the instructions that `targets` depend on and `wanted` accepts, in evaluation order,
  // without instructions on which only instructions in `known` depend.
  std::vector<int> needed(const std::vector<int>& targets,
                          const std::function<bool(const Inst&)>& wanted,
                          const std::set<int>& known = {}) const;

 private:
  const Fused& fused_;
  Names names_;
  std::vector<std::string> ids_;
  bool index_rows_ = false;
};

// A tensor that is a parameter of the kernel.
struct Parameter {
  std::string tensor, name, declaration;
};
std::vector<Parameter> parameters(const Fused& fused);
// Returns whether the kernel both reads and writes the tensor.
bool in_place(const Fused& fused, const std::string& tensor);
// size_declarations() writes ", int64_t NAME" for each size that the kernel uses as a number.
// add_sizes() appends the matching arguments to a launch of the plan.
std::string size_declarations(const Fused& fused);
void add_sizes(Json& args, const Fused& fused);
// Returns the type in which a kernel computes the value, "int64_t" or "float".
const char* value_type(const Inst& inst);
// Returns whether the operand's elements differ along a reduced axis.
bool varies(const Fused& fused, const Operand& operand);
// Returns the C++ type of an operand's elements in memory ("half_t").
std::string type_of(const Operand& operand);
// Returns one line that says what the program computes: "out = relu(x)".
std::string title(const Task& task, const Fused& fused);

// Returns whether the pointwise work calls functions that take many instructions, such as exp.
bool computes_functions(const Fused& fused);
// Returns the name of the device function that writes elements to the positions that an index
// tensor gives.
std::string store_of(WriteMode mode);

}  // namespace cutegen::recipes
