// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/merged_products.h"

#include <string>
#include <unordered_set>
#include <vector>

namespace cutegen::ptx {
namespace {

struct Sum {
  std::string_view product, opcode[3];  // of a * b + c, a * b - c and c - a * b
  std::string_view add, subtract;
};
constexpr Sum kSums[] = {
    {.product = "mul.f32",
     .opcode = {"fma.rn.f32", "fma-c.rn.f32", "c-fma.rn.f32"},
     .add = "add.f32",
     .subtract = "sub.f32"},
    {.product = "mul.ftz.f32",
     .opcode = {"fma.rn.ftz.f32", "fma-c.rn.ftz.f32", "c-fma.rn.ftz.f32"},
     .add = "add.ftz.f32",
     .subtract = "sub.ftz.f32"},
    {.product = "mul.f64",
     .opcode = {"fma.rn.f64", "fma-c.rn.f64", "c-fma.rn.f64"},
     .add = "add.f64",
     .subtract = "sub.f64"},
};

using Words = std::unordered_map<std::string_view, int>;

void count_words(const Operand& operand, Words& uses) {
  if (operand.kind == Operand::Kind::word || operand.has_base) ++uses[operand.text];
  for (const Operand& item : operand.items) count_words(item, uses);
}

bool writes(const Operand& destination, std::string_view name) {
  if (destination.text == name) return true;
  for (const Operand& item : destination.items)
    if (writes(item, name)) return true;
  return false;
}

class Merger {
 public:
  explicit Merger(const Function& f) : f_(f) {
    for (const Statement& s : f.statements) {
      if (!s.guard.empty()) ++uses_[s.guard];
      for (const Operand& operand : s.operands) count_words(operand, uses_);
    }
    for (const Scope& scope : f.scopes)
      for (const auto& [name, at] : scope.labels) labels_.insert(at);
  }

  std::unordered_map<size_t, Replacement> run() {
    for (size_t i = 0; i < f_.statements.size(); ++i) {
      const Statement& s = f_.statements[i];
      if (labels_.contains(i)) products_.clear();
      if (!merge(i)) forget(s);
      if (s.opcode.starts_with("bra") || s.opcode.starts_with("brx") ||
          s.opcode.starts_with("call") || s.opcode.starts_with("ret"))
        products_.clear();
      remember(i);
    }
    return std::move(out_);
  }

 private:
  // If statement `at` adds or subtracts a product, replaces both statements.
  bool merge(size_t at) {
    const Statement& s = f_.statements[at];
    for (const Sum& sum : kSums) {
      const bool adds = s.opcode == sum.add;
      if ((!adds && s.opcode != sum.subtract) || !s.guard.empty() || s.operands.size() != 3)
        continue;
      for (size_t side : {1, 2}) {
        const auto found = products_.find(s.operands[side].text);
        if (found == products_.end()) continue;
        const Statement& product = f_.statements[found->second];
        if (product.opcode != sum.product || product.scope != s.scope) continue;
        Statement fused = s;
        fused.opcode = sum.opcode[adds ? 0 : side];
        fused.operands = {s.operands[0], product.operands[1], product.operands[2],
                          s.operands[3 - side]};
        out_[at] = std::move(fused);
        out_[found->second] = std::nullopt;
        forget(s);
        return true;
      }
    }
    return false;
  }

  // Forgets the products that `s` changes, or whose factors it changes.
  void forget(const Statement& s) {
    if (s.operands.empty()) return;
    std::erase_if(products_, [&](const auto& item) {
      const Statement& product = f_.statements[item.second];
      for (const Operand& operand : product.operands)
        if (operand.kind == Operand::Kind::word && writes(s.operands[0], operand.text)) return true;
      return false;
    });
  }

  void remember(size_t at) {
    const Statement& s = f_.statements[at];
    for (const Sum& sum : kSums) {
      if (s.opcode != sum.product || !s.guard.empty() || s.operands.size() != 3) continue;
      const Operand& to = s.operands[0];
      // The definition and one use.
      if (to.kind == Operand::Kind::word && uses_[to.text] == 2) products_[to.text] = at;
    }
  }

  const Function& f_;
  Words uses_;
  std::unordered_set<size_t> labels_;
  std::unordered_map<std::string_view, size_t> products_;  // by register, since the last branch
  std::unordered_map<size_t, Replacement> out_;
};

}  // namespace

std::unordered_map<size_t, Replacement> merged_products(const Function& function) {
  return Merger(function).run();
}

}  // namespace cutegen::ptx
