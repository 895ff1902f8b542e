// SPDX-License-Identifier: Apache-2.0
#include "agent/library.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "agent/render.h"
#include "base/result.h"
#include "base/text.h"

namespace cutegen::agent {

const std::map<std::string, std::string>& component_files();

namespace {

constexpr const char* kGuidance = "prompts/guidance/";

std::vector<std::string> words(const std::string& text) {
  std::string plain = text;
  std::replace(plain.begin(), plain.end(), ',', ' ');
  auto out = split(plain, ' ');
  std::erase(out, "");
  return out;
}

std::string stem(const std::string& path) {
  size_t slash = path.rfind('/') + 1;
  return path.substr(slash, path.rfind('.') - slash);
}

// Returns the text in the first fence.
std::string fenced_part(const std::string& text) {
  size_t open = text.find("```");
  size_t begin = text.find('\n', open) + 1, end = text.find("```", begin);
  CG_ASSERT(open != std::string::npos && end != std::string::npos);
  return text.substr(begin, end - begin);
}

Component parse_page(const std::string& path, const std::string& text) {
  Component c;
  c.name = stem(path);
  size_t end = text.find("\n\n");
  CG_ASSERT(text.starts_with("# ") && end != std::string::npos);
  for (const std::string& line : split(text.substr(0, end), '\n')) {
    size_t colon = line.find(": ");
    std::string key = line.substr(0, colon), value = line.substr(std::min(colon + 2, line.size()));
    if (line.starts_with("# ")) c.title = line.substr(2);
    if (key == "symbols") c.symbols = words(value);
    if (key == "classes") c.classes = words(value);
    if (key == "arch") c.archs = words(value);
    if (key == "products") c.products = words(value);
    if (key == "operators") c.operators = words(value);
  }
  c.text = std::string(trim(text.substr(end)));
  c.example = fenced_part(c.text);
  return c;
}

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// "sm_80" runs on every later architecture, "sm_90a" only on itself.
bool runs_on(const std::vector<std::string>& archs, const std::string& device) {
  const auto number = [](const std::string& arch) {
    return arch.size() > 3 ? std::strtol(arch.c_str() + 3, nullptr, 10) : 0;
  };
  return std::any_of(archs.begin(), archs.end(), [&](const std::string& arch) {
    const bool exact = !arch.empty() && std::isalpha(uint8_t(arch.back()));
    return exact ? arch == device : number(arch) <= number(device);
  });
}

bool has_operator(const Task& task, const std::string& name) {
  return std::ranges::any_of(task.graph.nodes, [&](const Node& node) {
    return node.op.starts_with("aten." + name + ".");
  });
}

bool serves(const Component& page, const Task& task, const std::string& task_class) {
  const bool used = std::ranges::any_of(
      page.operators, [&](const std::string& name) { return has_operator(task, name); });
  if (!used && !page.operators.empty()) return false;
  return page.products.empty() || holds(page.products, to_string(product_mode(task, task_class)));
}

}  // namespace

const std::vector<Component>& components() {
  static const std::vector<Component> kAll = [] {
    std::vector<Component> all;
    for (const auto& [path, text] : component_files()) all.push_back(parse_page(path, text));
    return all;
  }();
  return kAll;
}

const Component* find_component(const std::string& given) {
  std::string symbol = lower(given);
  for (const char* prefix : {"cutegen::", "cute::", "cutegen/", "cute/"})
    if (symbol.starts_with(prefix)) symbol = symbol.substr(std::string_view(prefix).size());
  if (symbol.ends_with(".cuh") || symbol.ends_with(".hpp")) symbol.resize(symbol.size() - 4);
  for (const Component& c : components())
    if (c.name == symbol) return &c;
  for (const Component& c : components())
    for (const std::string& s : c.symbols)
      if (lower(s) == symbol) return &c;
  return nullptr;
}

std::vector<std::string> component_names() {
  std::vector<std::string> out;
  for (const Component& c : components()) {
    out.push_back(c.name);
    out.insert(out.end(), c.symbols.begin(), c.symbols.end());
  }
  return out;
}

// Drops the elementwise parts of a fused workload, because the other parts' kernels compute them.
std::vector<std::string> classes_of(const std::string& workload) {
  std::vector<std::string> out;
  for (std::string part : split(workload, '+')) {
    std::replace(part.begin(), part.end(), ' ', '_');
    if (prompt_files().contains(kGuidance + part + ".md")) out.push_back(part);
  }
  if (out.empty()) out.emplace_back(kElementwise);
  if (out.size() == 1) return out;
  std::erase(out, kElementwise);
  out.insert(out.begin() + 1, "fused");
  return out;
}

MathMode product_mode(const Task& task, const std::string& task_class) {
  return task.tf32_convolutions && task_class.find("conv") != std::string::npos ? MathMode::tf32
                                                                                : task.math_mode;
}

std::vector<const Component*> components_for(const TaskBrief& brief) {
  const auto classes = classes_of(brief.task.workload);
  std::vector<std::pair<size_t, const Component*>> ranked;
  for (const Component& c : components()) {
    bool cute = c.example.find("cute/") != std::string::npos;
    if (brief.dialect == Dialect::cuda && cute && c.example.find("cutegen/") == std::string::npos)
      continue;
    if (!runs_on(c.archs, brief.gpu.arch)) continue;
    for (size_t i = 0; i < classes.size(); ++i)
      if (holds(c.classes, classes[i]) && serves(c, brief.task, classes[i])) {
        ranked.emplace_back(i, &c);
        break;
      }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Pages for particular math modes come first, because they say what general pages cannot.
  std::stable_partition(ranked.begin(), ranked.end(), [](const auto& page) {
    return page.first == 0 && !page.second->products.empty();
  });
  std::vector<const Component*> out;
  out.reserve(ranked.size());
  for (const auto& [rank, c] : ranked) out.push_back(c);
  return out;
}

std::string guidance_for(const Task& task, size_t most) {
  std::string out;
  const auto classes = classes_of(task.workload);
  for (size_t i = 0; i < std::min(most, classes.size()); ++i) {
    if (classes.size() > 1) out += (i ? "\n" : "") + ("For the part " + classes[i]) + ":\n";
    const MathMode mode = product_mode(task, classes[i]);
    PageData data;
    data.set("split", mode == MathMode::fp32);
    data.set("single", mode != MathMode::fp32);
    data.set("mode", to_string(mode));
    out += render("guidance/" + classes[i] + ".md", data);
  }
  return out;
}

std::vector<std::string> guidance_classes() {
  std::vector<std::string> out;
  for (const auto& [path, text] : prompt_files())
    if (path.starts_with(kGuidance)) out.push_back(stem(path));
  return out;
}

}  // namespace cutegen::agent
