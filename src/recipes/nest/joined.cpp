// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/joined.h"

#include <algorithm>
#include <set>

#include "recipes/fuse/cuts.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

// Products that the value depends on through other operators only.
std::vector<const Node*> nearest_products(const Region& region, const std::string& value) {
  const Graph& graph = region.source.graph;
  std::set<const Node*> seen;
  std::vector<std::string> work{value};
  std::vector<const Node*> products;
  while (!work.empty()) {
    const Node* node = region.kept.count(work.back()) ? nullptr : graph.producer(work.back());
    work.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (is_product(*node)) {
      products.push_back(node);
      continue;
    }
    for (const std::string& input : inputs_of(*node)) work.push_back(input);
  }
  std::sort(products.begin(), products.end());  // the graph's order
  return products;
}

// Whether the kernel can load both second factors alike.
bool same_moves(const Factor& a, const Factor& b) {
  const auto moves = [](const Stride& x, const Stride& y) { return x.move == y.move; };
  return a.operand.dtype == b.operand.dtype && moves(a.row, b.row) && moves(a.depth, b.depth) &&
         std::equal(a.batch.begin(), a.batch.end(), b.batch.begin(), b.batch.end(), moves);
}

// Whether both products have the same first factor. Plan expressions of its strides may differ:
// they name the depth by one of several tensors.
bool same_factor(const Contraction& a, const Contraction& b) {
  const Operand &x = a.a.operand, &y = b.a.operand;
  return x.tensor == y.tensor && x.axes == y.axes && x.shape == y.shape &&
         x.original == y.original && !x.sliced() && !y.sliced() && a.m == b.m && a.k == b.k &&
         a.batch_axes == b.batch_axes && a.math_mode == b.math_mode && a.rounded == b.rounded &&
         a.size(a.m) == b.size(b.m) && a.size(a.k) == b.size(b.k);
}

// Whether the product's leaf takes a run of columns, and all rows and batches.
bool takes_columns(const Fused& finish, const Operand& leaf, const Shape& product) {
  const int64_t columns = product.back();
  int64_t below = 1;  // elements behind the axis
  bool inside = true, whole = true;
  for (size_t i = leaf.axes.size(); i-- > 0;) {
    const int64_t length = leaf.axes[i] < 0 ? 1 : finish.axes[size_t(leaf.axes[i])].size;
    if (leaf.sliced() && (leaf.starts[i].step > 1 || leaf.starts[i].index >= 0)) return false;
    if (length != leaf.shape[i]) {
      // Only the outermost of the axes that make up the columns may be a part.
      if (!inside || !whole || below * leaf.shape[i] != columns) return false;
      whole = false;
    }
    below *= leaf.shape[i];
    inside &= below < columns;
  }
  return true;
}

struct Run {
  const Node* product;
  int64_t from, to;  // columns, at the official size
};

int64_t first_column(const Operand& leaf) {
  int64_t at = 0, below = 1;
  for (size_t i = leaf.axes.size(); i-- > 0; below *= leaf.shape[i])
    if (leaf.sliced()) at += leaf.starts[i].at * below;
  return at;
}

class Joiner {
 public:
  Joiner(const Task& task, const Region& region, const Masks& masks)
      : task_(task), region_(region), masks_(masks) {}

  Result<Contraction> run() {
    std::vector<Contraction> parts;
    for (const Region::Output& output : region_.outputs) {
      CG_TRY(Contraction part, part_of(output));
      if (!parts.empty() &&
          (!same_factor(parts.front(), part) || !same_moves(parts.front().b, part.b) ||
           parts.front().partners.size() != part.partners.size()))
        return unsupported_error("products of different factors");
      parts.push_back(std::move(part));
    }
    for (size_t i = 0; i < runs_.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (runs_[i].product == runs_[j].product && runs_[i].from < runs_[j].to &&
            runs_[j].from < runs_[i].to)
          return unsupported_error("two results need the same columns of a product");
    Contraction joined = parts.front();
    joined.parts.assign(parts.begin() + 1, parts.end());
    return joined;
  }

 private:
  // One output: the products, and the work from them to the output.
  Result<Contraction> part_of(const Region::Output& output) {
    const auto products = nearest_products(region_, output.value);
    if (products.empty()) return unsupported_error("an output that needs no product");
    std::vector<Contraction> loaded;
    Region rest = region_;
    rest.outputs = {output};
    rest.slices = true;
    for (const Node* node : products) {
      if (base_name(node->op) == "mv") return unsupported_error("a product with a vector");
      std::string cut;
      CG_TRY(Contraction c, load_factors(task_, region_, *node, cut));
      const Value& result = node->outputs.front();
      rest.kept[result.name] = extents_of_product(c, result);
      rest.parts[result.name] = parts_of_result(c);
      rest.names.emplace(result.name, "product");
      loaded.push_back(std::move(c));
    }
    Attempt attempt = fuse(rest);
    if (!attempt.fused) return fail(attempt.fused.error());
    if (attempt.fused->reduces() || attempt.fused->scans())
      return unsupported_error("a reduction follows the products");
    return assemble(std::move(*attempt.fused), products, loaded);
  }

  // Finds the products among the leaves of `finish`.
  Result<Contraction> assemble(Fused finish, const std::vector<const Node*>& products,
                               const std::vector<Contraction>& loaded) {
    CG_CHECK(check_operands(finish));
    std::optional<Contraction> part;
    for (size_t i = 0; i < finish.insts.size(); ++i) {
      const Inst& inst = finish.insts[i];
      if (inst.kind != InstKind::leaf) continue;
      const auto of = std::find_if(products.begin(), products.end(), [&](const Node* node) {
        return node->outputs.front().name == inst.name;
      });
      if (of == products.end()) continue;
      CG_TRY(Contraction c,
             product_of(finish, int(i), **of, loaded[size_t(of - products.begin())]));
      if (!part) {
        part = std::move(c);
        continue;
      }
      if (!same_factor(*part, c) || !same_moves(part->b, c.b) || !same_loops(*part, c))
        return unsupported_error("products that do not have the same place in a tile");
      part->partners.push_back({.b = c.b,
                                .start = c.start,
                                .columns = c.loads.axes[size_t(c.n)].extent,
                                .product = c.product});
    }
    if (!part) return unsupported_error("no product is used");
    part->finish = std::move(finish);
    return std::move(*part);
  }

  Result<Contraction> product_of(const Fused& finish, int inst, const Node& node, Contraction c) {
    const Shape& whole = node.outputs.front().shape;
    const Operand& leaf = finish.inputs[size_t(finish.insts[size_t(inst)].operand)];
    if (!takes_columns(finish, leaf, whole))
      return unsupported_error("other elements of a product than a run of columns");
    c.finish = finish;
    c.product = inst;
    CG_CHECK(group_axes_of_output(c, whole, true));
    if (c.loops_n.empty() || c.loops_m.empty()) return unsupported_error("one row or column");
    const Operand& out = finish.outputs.front().operand;
    if (stride(finish, out, c.loops_n.back()).move != Move::next)
      return unsupported_error("an output that is not contiguous along the columns");
    Axis columns{.size = 1, .reduced = false, .extent = ""};
    for (const Loop& loop : c.loops_n) {
      columns.size *= loop.size;
      columns.extent += (columns.extent.empty() ? "" : "*") + loop.extent;
    }
    c.start = start_text(finish, leaf);
    c.columns = columns;
    const int64_t from = first_column(leaf);
    runs_.push_back({.product = &node, .from = from, .to = from + columns.size});
    return c;
  }

  Result<void> check_operands(const Fused& finish) const {
    for (const Operand& operand : finish.inputs) {
      if (masks_.count(operand.tensor)) return unsupported_error("a triangle of joined products");
      if (operand.gathered()) return unsupported_error("an index after joined products");
      for (const Start& start : operand.starts)
        if (start.step > 1) return unsupported_error("every other element after joined products");
    }
    return {};
  }

  static bool same_loops(const Contraction& a, const Contraction& b) {
    const auto alike = [](const std::vector<Loop>& x, const std::vector<Loop>& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [](const Loop& p, const Loop& q) { return p.axes == q.axes; });
    };
    return alike(a.loops_m, b.loops_m) && alike(a.loops_n, b.loops_n) &&
           alike(a.loops_batch, b.loops_batch);
  }

  const Task& task_;
  const Region& region_;
  const Masks& masks_;
  std::vector<Run> runs_;
};

}  // namespace

Result<Contraction> join_products(const Task& task, const Region& region, const Masks& masks) {
  return Joiner(task, region, masks).run();
}

}  // namespace cutegen::recipes
