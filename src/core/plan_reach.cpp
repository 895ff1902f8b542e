// SPDX-License-Identifier: Apache-2.0
#include "core/plan_reach.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/expr_node.h"
#include "core/plan_scope.h"

namespace cutegen {
namespace {

using Kind = Expr::Node::Kind;
constexpr size_t kMostDigits = 9;

bool is_word(char c) {
  return std::isalnum(uint8_t(c)) != 0 || c == '_';
}

std::string without_comments(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool line = text.compare(i, 2, "//") == 0, block = text.compare(i, 2, "/*") == 0;
    if (!line && !block) {
      out += text[i++];
      continue;
    }
    const size_t end = line ? text.find('\n', i) : text.find("*/", i + 2);
    if (end == std::string::npos) break;
    out += ' ';
    i = line ? end : end + 2;
  }
  return out;
}

// The decimal whole number that begins here, or -1 if it is part of a name or a float.
int64_t number_at(const std::string& text, size_t at) {
  size_t end = at;
  while (end < text.size() && std::isdigit(uint8_t(text[end]))) ++end;
  if (end == at || end - at > kMostDigits) return -1;
  size_t after = end;
  while (after < text.size() && std::string_view("uUlL").find(text[after]) != std::string::npos)
    ++after;
  if (after < text.size() && (is_word(text[after]) || text[after] == '.')) return -1;
  return std::stoll(text.substr(at, end - at));
}

// Guesses the value of k(NAME) from NAME = NUMBER in a source.
ModuleFacts guessed_facts(const std::string& raw) {
  ModuleFacts facts;
  const std::string text = without_comments(raw);
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    size_t end = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
    if (at == 0 || end == std::string::npos || !is_word(text[end])) continue;
    size_t begin = end;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    const size_t value = text.find_first_not_of(" \t", at + 1);
    if (value == std::string::npos) continue;
    if (const int64_t n = number_at(text, value); n >= 0)
      facts.constants.emplace(text.substr(begin, end + 1 - begin), n);
  }
  return facts;
}

std::optional<int64_t> integer_of(const Result<Number>& value) {
  if (!value) return {};
  if (const int64_t* i = std::get_if<int64_t>(&*value)) return *i;
  return {};
}

class Walk {
 public:
  Walk(const Plan& plan, const PlanScope& scope) : plan_(plan), scope_(scope) {}

  PlanReach run() {
    for (const auto& [name, e] : plan_.symbols) symbols_[name] = sites(e);
    for (const auto& [name, e] : plan_.defines) sites(e);
    for (const auto* steps : {&plan_.prepare, &plan_.steps})
      for (const Step& s : *steps) step(s);
    return std::move(out_);
  }

 private:
  void step(const Step& s) {
    for (const ArgSpec& a : s.args)
      if (a.kind != ArgSpec::Kind::map && a.kind != ArgSpec::Kind::tensor) sites(a.value);
    if (s.is_fill) return;
    std::set<size_t> inside;
    PlanReach::Launch launch;
    bool known = !s.when || is_true(*s.when);
    for (size_t i = 0; i < 3; ++i) {
      inside.merge(sites(s.grid[i]));
      const auto blocks = integer_of(s.grid[i].evaluate(scope_));
      const auto threads = integer_of(s.block[i].evaluate(scope_));
      known = known && blocks && threads && *blocks > 0 && *threads > 0 && *threads <= 1024;
      if (!known) continue;
      launch.grid[i] = *blocks;
      launch.threads *= *threads;
    }
    out_.launches.push_back(known ? std::optional(launch) : std::nullopt);
    out_.divisions_of.emplace_back(inside.begin(), inside.end());
  }

  bool is_true(const Expr& e) const {
    auto value = e.evaluate(scope_);
    return value && std::visit([](auto v) { return v != 0; }, *value);
  }

  // Records the divisions and bounds of an expression; returns the divisions that its value depends
  // on.
  std::set<size_t> sites(const Expr& e) {
    std::set<size_t> inside;
    visit(e.root(), [&](const Expr::Node& n) {
      if (auto symbol = symbols_.find(n.name); n.kind == Kind::symbol && symbol != symbols_.end())
        inside.insert(symbol->second.begin(), symbol->second.end());
      if (n.kind == Kind::ceil_div || (n.kind == Kind::binary && n.name == "/")) {
        inside.insert(out_.divisions.size());
        out_.divisions.push_back(division(n, e));
      }
      if (n.kind == Kind::min) out_.bounds.push_back(bound(n, e));
    });
    return inside;
  }

  // Counts (size + step - 1) / step as ceil_div(size, step).
  std::optional<PlanReach::Division> division(const Expr::Node& n, const Expr& e) const {
    auto size = integer_of(evaluate_node(*n.children[0], e, scope_));
    auto step = integer_of(evaluate_node(*n.children[1], e, scope_));
    if (!size || !step || *size < 0 || *step < 2) return {};
    const Expr::Node& top = *n.children[0];
    if (n.kind == Kind::binary && top.kind == Kind::binary && (top.name == "+" || top.name == "-"))
      size = std::max<int64_t>(0, *size - (*step - 1));
    return PlanReach::Division{.size = *size, .step = *step};
  }

  std::optional<PlanReach::Bound> bound(const Expr::Node& n, const Expr& e) const {
    auto a = integer_of(evaluate_node(*n.children[0], e, scope_));
    auto b = integer_of(evaluate_node(*n.children[1], e, scope_));
    if (!a || !b) return {};
    return PlanReach::Bound{.a = *a, .b = *b};
  }

  const Plan& plan_;
  const PlanScope& scope_;
  // For each symbol: the divisions on which it depends.
  std::map<std::string, std::set<size_t>> symbols_;
  PlanReach out_;
};

}  // namespace

Result<PlanReach> plan_reach(const KernelProgram& program, const Task& task, const ShapeCase& shape,
                             const DeviceFacts& device) {
  std::vector<ModuleFacts> facts;
  for (const std::string& name : program.plan.sources) {
    auto source = program.sources.find(name);
    facts.push_back(source == program.sources.end() ? ModuleFacts{}
                                                    : guessed_facts(source->second));
  }
  const PlanScope scope({.plan = program.plan, .task = task, .shape = shape, .device = device},
                        &facts);
  return Walk(program.plan, scope).run();
}

std::vector<int64_t> whole_numbers(const KernelProgram& program, int64_t least, int64_t most) {
  std::set<int64_t> found;
  for (const auto& [name, raw] : program.sources) {
    const std::string text = without_comments(raw);
    for (size_t i = 0; i < text.size(); ++i) {
      if (!std::isdigit(uint8_t(text[i]))) continue;
      const bool begins = i == 0 || (!is_word(text[i - 1]) && text[i - 1] != '.');
      if (begins)
        if (const int64_t n = number_at(text, i); n >= least && n <= most) found.insert(n);
      while (i + 1 < text.size() && is_word(text[i + 1])) ++i;
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace cutegen
