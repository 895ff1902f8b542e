// SPDX-License-Identifier: Apache-2.0
#include "agent/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostShapeLines = 6;
constexpr int kMostSteps = 16;  // most nodes that a search back from a value passes

using Axes = std::vector<int64_t>;

std::string base_of(const Node& node) {
  std::string_view op = node.op;
  if (op.starts_with("aten.")) op.remove_prefix(5);
  return std::string(op.substr(0, op.find('.')));
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

// The value that an argument refers to, or "".
std::string ref_of(const Node& node, size_t index) {
  if (index >= node.args.size() || !node.args[index].is_object()) return {};
  auto it = node.args[index].find("ref");
  return it != node.args[index].end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool is_product(const std::string& op) {
  return is_one_of(op, {"mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "convolution"});
}

bool is_view(const std::string& op) {
  return is_one_of(op, {"t", "permute", "transpose", "view", "_unsafe_view", "expand", "unsqueeze",
                        "squeeze", "reshape", "detach", "alias", "clone", "contiguous"});
}

class Finder {
 public:
  explicit Finder(const Task& task) : task_(task), graph_(task.graph) {}

  std::vector<std::string> run() {
    for (const Node& node : graph_.nodes) {
      if (out_.size() == kMostShapeLines) break;
      const std::string op = base_of(node);
      one_element(node, op);
      if (op == "sum" || op == "mean") reduced_product(node, op);
      if (op == "sub") difference(node);
      if (op == "triu" || op == "tril") triangle(node, op);
      if (op.ends_with("batch_norm") || op.starts_with("_native_batch_norm")) fixed_norm(node);
      parameters_alone(node, op);
    }
    return std::move(out_);
  }

 private:
  void say(std::string line) { out_.push_back(std::move(line)); }

  const Shape* shape_of(const std::string& value) const {
    const Value* found = graph_.find(value);
    return found ? &found->shape : nullptr;
  }

  // The axes of a reduction, counted from 0. Empty if they cannot be read.
  Axes axes_of(const Node& node, const Shape& shape) const {
    const auto rank = int64_t(shape.size());
    Axes out;
    auto add = [&](const Json& axis) {
      if (!axis.is_number_integer()) return;
      int64_t at = axis.get<int64_t>();
      at += at < 0 ? rank : 0;
      if (at >= 0 && at < rank) out.push_back(at);
    };
    if (node.args.size() < 2 || node.args[1].is_null()) {
      for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    } else if (node.args[1].is_array()) {
      for (const Json& axis : node.args[1]) add(axis);
    } else {
      add(node.args[1]);
    }
    return out;
  }

  bool runs_over_one(const Node& node, const std::string& op) const {
    if (!is_one_of(op, {"sum", "mean", "max", "min", "amax", "amin", "prod", "logsumexp", "softmax",
                        "_softmax", "log_softmax", "_log_softmax"}))
      return false;
    const Shape* shape = shape_of(ref_of(node, 0));
    if (!shape || shape->empty()) return false;
    const Axes axes = axes_of(node, *shape);
    return !axes.empty() && std::all_of(axes.begin(), axes.end(),
                                        [&](int64_t a) { return (*shape)[size_t(a)] == 1; });
  }

  void one_element(const Node& node, const std::string& op) {
    if (!runs_over_one(node, op)) return;
    const bool softmax = op.ends_with("softmax");
    say(fmt::format("{} ({}) runs over one element: {}.", node.id, op,
                    softmax ? op.find("log") == std::string::npos ? "its finite results are 1"
                                                                  : "its finite results are 0"
                            : "it returns its input"));
  }

  // Follows a value back through operations that keep sums: scaling, adding a term.
  const Node* product_behind(std::string value) const {
    for (int step = 0; step < kMostSteps; ++step) {
      const Node* node = graph_.producer(value);
      if (!node) return nullptr;
      const std::string op = base_of(*node);
      if (is_product(op)) return node;
      const bool scaled = is_one_of(op, {"mul", "div"}) && ref_of(*node, 1).empty();
      const bool shifted = is_one_of(op, {"add", "sub"}) && is_parameter(ref_of(*node, 1));
      if (!scaled && !shifted) return nullptr;
      value = ref_of(*node, 0);
    }
    return nullptr;
  }

  // Whether the value is a parameter or a constant, not computed from an input.
  bool is_parameter(const std::string& value) const {
    if (value.empty()) return true;
    const TensorInfo* tensor = task_.find(value);
    return tensor && (tensor->role == TensorRole::parameter || tensor->role == TensorRole::buffer);
  }

  void reduced_product(const Node& node, const std::string& op) {
    const Node* product = product_behind(ref_of(node, 0));
    const Shape* shape = shape_of(ref_of(node, 0));
    if (!product || !shape) return;
    const Axes axes = axes_of(node, *shape);
    const auto rank = int64_t(shape->size());
    auto has = [&](int64_t a) { return std::find(axes.begin(), axes.end(), a) != axes.end(); };
    const char* what = op == "sum" ? "sum" : "mean";
    if (base_of(*product) == "convolution") {
      bool all = rank > 2;
      for (int64_t a = 2; a < rank; ++a) all = all && has(a);
      if (all)
        say(
            fmt::format("{} is the {} of the convolution {} over all positions. Sums are linear: "
                        "for each filter tap, sum the input values that it meets, then multiply "
                        "once.",
                        node.id, what, product->id));
    } else if (has(rank - 1)) {
      say(
          fmt::format("{} is the {} of the columns of the product {}: multiply with the summed "
                      "columns of the second operand, a matrix-vector product ({}).",
                      node.id, what, product->id, "`prepare` can sum weights"));
    } else if (rank > 1 && has(rank - 2)) {
      say(
          fmt::format("{} is the {} of the rows of the product {}: sum the rows of the first "
                      "operand, then multiply once.",
                      node.id, what, product->id));
    }
  }

  // Follows reductions over one element back to the value that they return.
  std::string same_as(std::string value) const {
    for (int step = 0; step < kMostSteps; ++step) {
      const Node* node = graph_.producer(value);
      if (!node) return value;
      const std::string op = base_of(*node);
      if (!runs_over_one(*node, op) || op.ends_with("softmax")) return value;
      value = ref_of(*node, 0);
    }
    return value;
  }

  void difference(const Node& node) {
    const std::string a = ref_of(node, 0), b = ref_of(node, 1);
    if (a.empty() || b.empty() || same_as(a) != same_as(b)) return;
    say(fmt::format(
        "{} subtracts a value from itself: it is 0 where the value is finite, else NaN.", node.id));
  }

  void triangle(const Node& node, const std::string& op) {
    const Node* product = product_behind(ref_of(node, 0));
    if (!product || base_of(*product) == "convolution") return;
    say(
        fmt::format("{} keeps one triangle of the product {}: skip the tiles {} the diagonal and "
                    "write zeros there.",
                    node.id, product->id, op == "triu" ? "below" : "above"));
  }

  void fixed_norm(const Node& node) {
    const bool fixed = node.op.find("no_training") != std::string::npos ||
                       (node.args.size() > 5 && node.args[5] == Json(false));
    const Node* product = product_behind(ref_of(node, 0));
    const bool statistics = is_parameter(ref_of(node, 3)) && !ref_of(node, 3).empty();
    if (!fixed || !statistics || !product) return;
    say(
        fmt::format("{} has fixed statistics: it is a scale and a shift for each channel, which "
                    "`prepare` can fold into weight and bias of {}.",
                    node.id, product->id));
  }

  // Finds nodes that read only parameters. Views move no data, so they are not mentioned.
  void parameters_alone(const Node& node, const std::string& op) {
    bool any = false, all = true;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const std::string ref = ref_of(node, i);
      if (ref.empty()) continue;
      any = true;
      all = all && (is_parameter(ref) || derived_.contains(ref));
    }
    if (!any || !all) return;
    for (const Value& v : node.outputs) derived_.insert(v.name);
    if (!is_view(op))
      say(fmt::format("{} depends on parameters alone: compute it in `prepare`.", node.id));
  }

  const Task& task_;
  const Graph& graph_;
  std::set<std::string> derived_;  // values computed only from parameters
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> removable_work(const Task& task) {
  std::vector<std::string> out = Finder(task).run();
  for (std::string& line : out) line = sanitize(line, 400);
  return out;
}

}  // namespace cutegen::agent
