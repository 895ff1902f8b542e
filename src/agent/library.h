// SPDX-License-Identifier: Apache-2.0
// Pages for models and people: components with compiled examples, and guidance for classes of
// workloads.
//
// Contract: the pages are docs/components/NAME.md (title, "key: value" lines, text with one kernel)
// and prompts/guidance/CLASS.md, embedded at build time. Tests compile every example for each of
// its architectures. A workload "matmul+elementwise" has the classes matmul and fused. A page fits
// a task if it covers one of the task's classes, runs on its device, and is accurate enough.
//
// Example: if (const Component* c = find_component("combine_row")) print(c->text);
#pragma once

#include <string>
#include <vector>

#include "agent/brief.h"

namespace cutegen::agent {

struct Component {
  std::string name, title;  // "reduce", "Reductions within warps and blocks: ..."
  std::vector<std::string> symbols, classes, archs;
  // The math modes of matrix products that the page covers; empty: all.
  std::vector<std::string> products;
  // The task must have one of these ATen operators ("topk"); empty: any task.
  std::vector<std::string> operators;
  std::string text;     // the text with the example in its fence
  std::string example;  // only the kernel
};
const std::vector<Component>& components();
// Finds a page by name, symbol ("cutegen::load", "load") or header; null if there is none.
const Component* find_component(const std::string& symbol);
// Page names and symbols, for "did you mean".
std::vector<std::string> component_names();
// The components that fit a task, the best match first.
std::vector<const Component*> components_for(const TaskBrief& brief);
// The math mode that is accurate enough for a matrix product in this class of the task.
MathMode product_mode(const Task& task, const std::string& task_class);

// "transposed conv+norm" -> transposed_conv, norm, fused
std::vector<std::string> classes_of(const std::string& workload);
// Advice for the classes of the task's workload, at most `most` of them.
std::string guidance_for(const Task& task, size_t most);
std::vector<std::string> guidance_classes();

}  // namespace cutegen::agent
