// SPDX-License-Identifier: Apache-2.0
// Documentation pages for models and people: one for each component (a part of CuTe or of cutegen's
// device headers), with an example kernel, and advice for each class of tasks.
//
// Contract: the build embeds the pages docs/components/NAME.md (title, "key: value" lines, text
// with one kernel) and prompts/guidance/CLASS.md. Tests compile every example for each of its
// architectures. A task whose workload is "matmul+elementwise" has the classes `matmul` and
// `fused`. components_for() selects a page if it covers one of the task's classes, if its example
// runs on the device, and if its products are accurate enough for the math mode.
//
// Example: if (const Component* c = find_component("combine_row")) print(c->text);
#pragma once

#include <string>
#include <vector>

#include "agent/brief.h"

namespace cutegen::agent {

struct Component {
  std::string name, title;  // for example "reduce" and "Reductions within warps and blocks: ..."
  std::vector<std::string> symbols, classes, archs;
  // The math modes for whose matrix products the page is meant; empty: all modes.
  std::vector<std::string> products;
  // The page is only for tasks with one of these ATen operators ("topk"). Empty: for any task.
  std::vector<std::string> operators;
  std::string text;     // the page's text, with the example in a fence
  std::string example;  // only the kernel
};
const std::vector<Component>& components();
// Finds a page by name, symbol ("cutegen::load", "load") or header; null if there is none.
const Component* find_component(const std::string& symbol);
// All page names and symbols, to suggest one when a name is unknown.
std::vector<std::string> component_names();
// The components that suit a task, the best match first.
std::vector<const Component*> components_for(const TaskBrief& brief);
// The math mode for this class of the task: tf32 for convolutions if the task permits TF32 for
// them, otherwise the math mode of the task.
MathMode product_mode(const Task& task, const std::string& task_class);

// Returns the classes of a workload. For example, "transposed conv+norm" has the classes
// transposed_conv, norm and fused.
std::vector<std::string> classes_of(const std::string& workload);
// The advice for the task's classes, for at most `most` of them.
std::string guidance_for(const Task& task, size_t most);
std::vector<std::string> guidance_classes();

}  // namespace cutegen::agent
