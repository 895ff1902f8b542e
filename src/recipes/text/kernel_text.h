// SPDX-License-Identifier: Apache-2.0
// Text of kernels: templates, and the C++ of a Fused's instructions.
//
// Contract: fill() replaces every {{name}} of a shipped template; a missing or unknown name is an
// internal error. Code gives each instruction an identifier and writes statements in evaluation
// order.
//
// Example: fill("kernels/elementwise/flat.cu", {{"threads", "256"}, ...})
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "recipes/graph/names.h"
#include "recipes/nest/fused.h"

namespace cutegen::recipes {
const std::map<std::string, std::string>& recipe_templates();  // texts by path from the source root
}

namespace cutegen::recipes {

std::string fill(const std::string& path, const std::map<std::string, std::string>& values);
// "make_shape(a, b)", or "a" alone: fewer templates to instantiate.
std::string tuple_of(const std::string& maker, const std::vector<std::string>& items);
std::string indent(const std::string& text, int spaces);

class Code {
 public:
  explicit Code(const Fused& fused);

  const std::string& id(int inst) const { return ids_[size_t(inst)]; }
  // A unique name for a variable of the kernel itself.
  std::string word(const std::string& wanted) { return names_.unique(wanted); }
  // The text that reads a value. Row values of a column kernel are arrays: "mean[v]".
  std::string use(int inst) const;
  void index_rows(bool on) { index_rows_ = on; }
  // The C++ expression that computes an instruction.
  std::string expression(int inst) const;
  // "const float t = ...;"
  std::string statement(int inst) const;
  // The instructions that `targets` need and `wanted` accepts, in evaluation order. It omits
  // instructions that only a `known` instruction needs.
  std::vector<int> needed(const std::vector<int>& targets,
                          const std::function<bool(const Inst&)>& wanted,
                          const std::set<int>& known = {}) const;

 private:
  const Fused& fused_;
  Names names_;
  std::vector<std::string> ids_;
  bool index_rows_ = false;
};

// Tensors that are parameters of the kernel, inputs before outputs, each once.
struct Parameter {
  std::string tensor, name, declaration;
};
std::vector<Parameter> parameters(const Fused& fused);
// ", int64_t NAME" for each size that the kernel computes with, and their arguments.
std::string size_declarations(const Fused& fused);
void add_sizes(Json& args, const Fused& fused);
// "int64_t" or "float": the type in which a kernel computes the value.
const char* value_type(const Inst& inst);
// Whether an operand has an axis that is reduced.
bool varies(const Fused& fused, const Operand& operand);
// "half_t", for reading and writing an operand.
std::string type_of(const Operand& operand);
// What the program computes, in one line: "out = relu(x)".
std::string title(const Task& task, const Fused& fused);

}  // namespace cutegen::recipes
