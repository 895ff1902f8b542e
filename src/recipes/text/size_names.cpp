// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/size_names.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

namespace cutegen::recipes {
namespace {

constexpr size_t kShort = 24;  // characters of an expression that needs no name

// Whether one pair of parentheses encloses the whole text. Then it is an operand anywhere.
bool enclosed(const std::string& text) {
  if (text.empty() || text[0] != '(') return false;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

// Replaces the enclosed expression, except where it is the argument of a function.
std::string with_name(std::string text, const std::string& size, const std::string& name) {
  for (size_t at = text.find(size); at != std::string::npos; at = text.find(size, at)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool argument = std::isalnum(static_cast<unsigned char>(before)) || before == '_';
    if (!argument) text.replace(at, size.size(), name);
    at += argument ? size.size() : name.size();
  }
  return text;
}

void replace_in(Json& json, const std::string& text, const std::string& name) {
  if (json.is_string()) json = with_name(json.get<std::string>(), text, name);
  if (json.is_structured())
    for (Json& item : json) replace_in(item, text, name);
}

std::set<std::string> taken_names(const std::vector<Scratch>& scratch, const Json& plan) {
  std::set<std::string> names;
  for (const Scratch& s : scratch) names.insert(s.name);
  for (const char* part : {"symbols", "bind"})
    if (plan.contains(part))
      for (const auto& [name, text] : plan.at(part).items()) names.insert(name);
  return names;
}

}  // namespace

void name_sizes(const std::vector<Scratch>& scratch, Json& plan) {
  std::set<std::string> taken = taken_names(scratch, plan);
  std::vector<std::pair<std::string, std::string>> named;  // in the order in which they are used
  for (const Scratch& s : scratch)
    for (size_t i = 0; i < s.extents.size(); ++i) {
      std::string text = s.extents[i];
      for (const auto& [name, size] : named) text = with_name(std::move(text), size, name);
      if (text.size() <= kShort || !enclosed(text)) continue;
      std::string name = fmt::format("{}_size{}", s.name, i);
      while (!taken.insert(name).second) name += "_";
      replace_in(plan, text, name);
      named.emplace_back(name, text);
    }
  if (named.empty()) return;
  Json symbols = Json::object();  // a symbol may only use earlier ones
  for (const auto& [name, size] : named) symbols[name] = size;
  symbols.update(plan.at("symbols"));
  plan["symbols"] = std::move(symbols);
}

}  // namespace cutegen::recipes
