// SPDX-License-Identifier: Apache-2.0
#include "toolchain/strip.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/text.h"

namespace cutegen::toolchain {
namespace {

struct Variable {
  size_t begin, end;  // the statement with its line end
  std::string_view name, rest;
  bool kept = false;
};

constexpr auto kNameBytes = [] {
  std::array<bool, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[size_t(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[size_t(c)] = true;
  for (int c = '0'; c <= '9'; ++c) table[size_t(c)] = true;
  for (char c : {'_', '$', '%'}) table[size_t(c)] = true;
  return table;
}();

bool name_byte(char c) {
  return kNameBytes[uint8_t(c)];
}

template <class F>
void for_each_name(std::string_view text, F f) {
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    while (i < text.size() && name_byte(text[i])) ++i;
    if (i > begin) f(text.substr(begin, i - begin));
    if (i == begin) ++i;
  }
}

// The declared name: the last word before '[', '=' or ';'.
std::string_view declared_name(std::string_view statement) {
  size_t end = statement.find_first_of("[=;");
  if (end == std::string_view::npos) return {};
  while (end > 0 && !name_byte(statement[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && name_byte(statement[begin - 1])) --begin;
  return statement.substr(begin, end - begin);
}

// Module-scope variables with module linkage: lines that start with .global or .const.
std::vector<Variable> variables(std::string_view ptx) {
  std::vector<Variable> out;
  for (size_t i = 0; i < ptx.size();) {
    size_t line_end = std::min(ptx.find('\n', i), ptx.size());
    std::string_view line = ptx.substr(i, line_end - i);
    if (line.starts_with(".global ") || line.starts_with(".const ")) {
      size_t semicolon = ptx.find(';', i);
      if (semicolon == std::string_view::npos) break;
      size_t end = std::min(ptx.find('\n', semicolon), ptx.size() - 1) + 1;
      std::string_view statement = ptx.substr(i, semicolon + 1 - i);
      std::string_view name = declared_name(statement);
      size_t after = size_t(name.data() - statement.data()) + name.size();
      if (!name.empty())
        out.push_back({.begin = i, .end = end, .name = name, .rest = statement.substr(after)});
      i = end;
    } else {
      i = line_end + 1;
    }
  }
  return out;
}

// A plan may name the variable in k(name) or in the spec of a tensor map. Such a variable has a C
// name and a value; constants from headers have mangled C++ names.
bool is_for_the_plan(const Variable& v) {
  return v.name.starts_with("cg_") ||
         (!v.name.starts_with('_') && v.rest.find('=') != std::string_view::npos);
}

void keep_used(std::string_view ptx, std::vector<Variable>& all) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < all.size(); ++i) index.emplace(all[i].name, i);
  std::vector<size_t> work;
  auto use = [&](std::string_view name) {
    auto at = index.find(name);
    if (at == index.end() || all[at->second].kept) return;
    all[at->second].kept = true;
    work.push_back(at->second);
  };
  size_t from = 0;
  for (const Variable& v : all) {
    for_each_name(ptx.substr(from, v.begin - from), use);
    from = v.end;
    if (is_for_the_plan(v)) use(v.name);
  }
  for_each_name(ptx.substr(from), use);
  while (!work.empty()) {
    std::string_view initialiser = all[work.back()].rest;
    work.pop_back();
    for_each_name(initialiser, use);
  }
}

}  // namespace

std::string strip_ptx(std::string_view ptx, std::string_view name) {
  auto all = variables(ptx);
  keep_used(ptx, all);
  std::string out;
  size_t from = 0;
  for (const Variable& v : all) {
    if (v.kept) continue;
    out += ptx.substr(from, v.begin - from);
    from = v.end;
  }
  out += ptx.substr(from);
  // The compiler ran in /, so it wrote the source's name as a path.
  return replace_all(std::move(out), "\"/" + std::string(name) + "\"",
                     "\"" + std::string(name) + "\"");
}

}  // namespace cutegen::toolchain
