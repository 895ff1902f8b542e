// SPDX-License-Identifier: Apache-2.0
// Documentation for models and people: one page with an example kernel for each component (a part
// of CuTe or of cutegen's device headers), and one page of advice for each class of tasks.
//
// Contract: the build embeds in cutegen the pages docs/components/NAME.md (title, "key: value"
// lines, text with one kernel) and prompts/guidance/CLASS.md. Tests compile every example for each
// of its architectures. A task whose workload is "matmul+elementwise" has the classes `matmul` and
// `fused`. The function components_for() selects a page on three conditions: the page covers one of
// the task's classes, the page's example runs on the device, and the matrix products on the page
// are accurate enough for the task's math mode (gpu/math_mode.h).
//
// Example: if (const Component* c = find_component("combine_row")) print(c->text);
#pragma once

#include <string>
#include <vector>

#include "agent/brief.h"

namespace cutegen::agent {

struct Component {
  std::string name, title;  // "reduce" and "Reductions within warps and blocks: ...", for example
  std::vector<std::string> symbols, classes, archs;
  // Names of the math modes whose matrix products the page describes; empty: all math modes.
  std::vector<std::string> products;
  // The page is only for tasks with one of these ATen operators ("topk"); empty: for any task.
  std::vector<std::string> operators;
  std::string text;     // the page's text, with the example in a fence
  std::string example;  // only the kernel
};
const std::vector<Component>& components();
// Finds a page by name, symbol ("cutegen::load", "load") or header. Returns null if no page
// matches.
const Component* find_component(const std::string& symbol);
// Returns all page names and symbols, from which an error message suggests one.
std::vector<std::string> component_names();
// Returns the components that suit a task, the best match first.
std::vector<const Component*> components_for(const TaskBrief& brief);
// Returns tf32 if the class is a convolution and the task permits TF32 convolutions, otherwise the
// task's math mode.
MathMode product_mode(const Task& task, const std::string& task_class);

// Returns the classes of a workload: transposed_conv, norm and fused for "transposed conv+norm".
std::vector<std::string> classes_of(const std::string& workload);
// Returns the advice for the task's classes, for at most `most` classes.
std::string guidance_for(const Task& task, size_t most);
std::vector<std::string> guidance_classes();

}  // namespace cutegen::agent
