// SPDX-License-Identifier: Apache-2.0
#include "core/expr_cpp.h"

#include <fmt/format.h>

#include <optional>

#include "core/expr_node.h"

namespace cutegen {
namespace {

using NodeKind = Expr::Node::Kind;

std::optional<ExprLeaf> leaf_of(const Expr::Node& n) {
  using Leaf = ExprLeaf::Kind;
  switch (n.kind) {
    case NodeKind::symbol:
      return ExprLeaf{.kind = Leaf::symbol, .name = n.name};
    case NodeKind::dim:
      return ExprLeaf{.kind = Leaf::dim, .name = n.name, .axis = n.value};
    case NodeKind::stride:
      return ExprLeaf{.kind = Leaf::stride, .name = n.name, .axis = n.value};
    case NodeKind::size:
      return ExprLeaf{.kind = Leaf::size, .name = n.name};
    case NodeKind::attribute:
      return ExprLeaf{.kind = Leaf::attribute, .name = n.name};
    case NodeKind::argument:
      return ExprLeaf{.kind = Leaf::argument, .name = n.name};
    case NodeKind::constant:
      return ExprLeaf{.kind = Leaf::constant, .name = n.name};
    case NodeKind::occupancy:
      return ExprLeaf{.kind = Leaf::occupancy, .name = n.name};
    default:
      return std::nullopt;
  }
}

class CppWriter {
 public:
  explicit CppWriter(const LeafText& leaf) : leaf_(leaf) {}

  Result<std::string> text(const Expr::Node& n) const {
    if (auto leaf = leaf_of(n)) return leaf_(*leaf);
    if (n.kind == NodeKind::integer) return fmt::format("INT64_C({})", n.value);
    if (n.kind == NodeKind::real) return fmt::format("double({})", Json(n.real).dump());
    std::vector<std::string> parts;
    for (const auto& child : n.children) {
      CG_TRY(std::string part, text(*child));
      parts.push_back(std::move(part));
    }
    switch (n.kind) {
      case NodeKind::negate:
        return "(-" + parts[0] + ")";
      case NodeKind::conditional:
        return fmt::format("({} != 0 ? {} : {})", parts[0], parts[1], parts[2]);
      case NodeKind::ceil_div:
        return of_two("ceil_over", parts);
      case NodeKind::min:
        return of_two("least", parts);
      case NodeKind::max:
        return of_two("most", parts);
      default:
        return binary(n.name, parts);
    }
  }

 private:
  static std::string of_two(const char* function, const std::vector<std::string>& parts) {
    return fmt::format("{}({}, {})", function, parts[0], parts[1]);
  }

  static std::string binary(const std::string& op, const std::vector<std::string>& parts) {
    if (op[0] == '/') return of_two("over", parts);
    if (op[0] == '%') return of_two("rest", parts);
    const std::string plain = fmt::format("({} {} {})", parts[0], op, parts[1]);
    const bool compares = op[0] == '<' || op[0] == '>' || op[0] == '=' || op[0] == '!';
    return compares ? "int64_t" + plain : plain;
  }

  const LeafText& leaf_;
};

}  // namespace

Result<std::string> cpp_text(const Expr& expression, const LeafText& leaf) {
  return CppWriter(leaf).text(expression.root());
}

bool is_leaf(const Expr& expression, ExprLeaf& out) {
  auto leaf = leaf_of(expression.root());
  if (leaf) out = std::move(*leaf);
  return leaf.has_value();
}

}  // namespace cutegen
