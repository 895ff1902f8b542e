// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/writes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {
namespace {

bool mentions(const Json& json, const std::string& name) {
  if (reference(json) == name) return true;
  return json.is_array() && std::any_of(json.begin(), json.end(),
                                        [&](const Json& item) { return mentions(item, name); });
}

std::vector<const Node*> readers_of(const Graph& graph, const std::string& name) {
  std::vector<const Node*> list;
  for (const Node& node : graph.nodes) {
    bool reads = std::any_of(node.args.begin(), node.args.end(),
                             [&](const Json& arg) { return mentions(arg, name); });
    for (const auto& [key, arg] : node.kwargs.items()) reads |= mentions(arg, name);
    if (reads) list.push_back(&node);
  }
  return list;
}

bool is_one(const Node& node, const char* op) {
  return node.op.rfind("aten.", 0) == 0 && base_name(node.op) == op;
}

// Reads one mutated tensor's part of the graph.
class WriteReader {
 public:
  WriteReader(const Graph& graph, const std::string& tensor) : graph_(graph), tensor_(tensor) {}

  Result<Write> run() const {
    auto part = partial();
    if (part) return part;
    return whole();
  }

 private:
  Result<Write> partial() const {
    const Node* scatter = nullptr;
    for (const Node* node : readers_of(graph_, tensor_)) {
      if (is_one(*node, "slice_scatter") || is_one(*node, "index_copy") ||
          is_one(*node, "index_put")) {
        if (scatter) return refused();
        scatter = node;
      } else if (!is_final_copy(*node) && !is_target(*node)) {
        return refused();
      }
    }
    if (!scatter || reference(scatter->args[0]) != tensor_ || !ends(*scatter)) return refused();
    return is_one(*scatter, "slice_scatter") ? slice(*scatter) : by_index(*scatter);
  }

  Result<Write> whole() const {
    const auto last = graph_.finals.find(tensor_);
    if (last == graph_.finals.end()) return refused();
    Write write{.tensor = tensor_, .source = source_of({{"ref", last->second}}), .whole = true};
    if (shape_of(write.source) != shape_of(tensor_)) return refused();
    return write;
  }

  tl::unexpected<Error> refused() const {
    return unsupported_error("forward() mutates '" + tensor_ +
                             "' in place in a way that no recipe covers");
  }
  const Shape& shape_of(const std::string& name) const {
    static const Shape kNone;
    const Value* value = graph_.find(name);
    return value ? value->shape : kNone;
  }

  // copy(tensor, result), which functionalisation adds at the end.
  bool is_final_copy(const Node& node) const {
    return is_one(node, "copy") && reference(argument(node, 0, "self")) == tensor_;
  }

  // A view of the tensor that only says where copy() writes.
  bool is_target(const Node& node) const {
    if (!is_one(node, "slice")) return false;
    const auto readers = readers_of(graph_, node.outputs[0].name);
    return std::all_of(readers.begin(), readers.end(), [&](const Node* reader) {
      return is_one(*reader, "copy") &&
             reference(argument(*reader, 0, "self")) == node.outputs[0].name;
    });
  }

  // Whether nothing reads the changed tensor.
  bool ends(const Node& scatter) const {
    const std::string& result = scatter.outputs[0].name;
    const auto readers = readers_of(graph_, result);
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), result) ==
               graph_.outputs.end() &&
           std::all_of(readers.begin(), readers.end(),
                       [&](const Node* node) { return is_final_copy(*node); });
  }

  // Returns the value that has the new elements: for copy(view, value), `value`.
  std::string source_of(const Json& given) const {
    const std::string name = reference(given).value_or("");
    const Node* node = graph_.producer(name);
    if (!node || !is_one(*node, "copy")) return name;
    const std::string from = reference(argument(*node, 1, "src")).value_or("");
    return shape_of(from) == shape_of(name) ? from : name;
  }

  Result<size_t> axis(const Json& dim) const {
    const auto rank = int64_t(shape_of(tensor_).size());
    const int64_t given = dim.is_number_integer() ? dim.get<int64_t>() : 0;
    const int64_t found = given < 0 ? given + rank : given;
    if (found < 0 || found >= rank) return refused();
    return size_t(found);
  }

  Result<Write> checked(Write write) const {
    const Shape &whole = shape_of(tensor_), &part = shape_of(write.source);
    if (part.size() != whole.size()) return refused();
    for (size_t i = 0; i < whole.size(); ++i)
      if (i != write.axis && part[i] != whole[i]) return refused();
    if (!write.index.empty() && shape_of(write.index) != Shape{part[write.axis]}) return refused();
    return write;
  }

  // slice_scatter(tensor, source, dim, start, end, step)
  Result<Write> slice(const Node& node) const {
    const Json start = argument(node, 3, "start"), step = argument(node, 5, "step");
    if (!step.is_null() && step != 1) return refused();
    Write write{.tensor = tensor_, .source = source_of(argument(node, 1, "src"))};
    CG_TRY(write.axis, axis(argument(node, 2, "dim")));
    write.start = start.is_number_integer() ? start.get<int64_t>() : 0;
    return checked(std::move(write));
  }

  // index_copy(tensor, dim, index, source) or index_put(tensor, [null, index], source, false)
  Result<Write> by_index(const Node& node) const {
    const bool put = is_one(node, "index_put");
    Write write{.tensor = tensor_, .source = source_of(argument(node, put ? 2 : 3, "source"))};
    Json index = argument(node, put ? 1 : 2, "index");
    if (put) {
      if (number(argument(node, 3, "accumulate")).value_or(0) != 0) return refused();
      const auto given = std::find_if(index.begin(), index.end(),
                                      [](const Json& item) { return !item.is_null(); });
      if (given == index.end() || std::find_if(given + 1, index.end(), [](const Json& item) {
                                    return !item.is_null();
                                  }) != index.end())
        return refused();
      write.axis = size_t(given - index.begin());
      index = Json(*given);
      write.wraps = true;
    } else {
      CG_TRY(write.axis, axis(argument(node, 1, "dim")));
    }
    write.index = reference(index).value_or("");
    const Value* places = graph_.find(write.index);
    if (!places || (places->dtype != DType::i64 && places->dtype != DType::i32)) return refused();
    return checked(std::move(write));
  }

  const Graph& graph_;
  const std::string& tensor_;
};

}  // namespace

Result<std::vector<Write>> find_writes(const Task& task) {
  std::vector<Write> list;
  for (const TensorInfo& tensor : task.tensors) {
    if (!tensor.mutated) continue;
    CG_TRY(Write write, WriteReader(task.graph, tensor.name).run());
    list.push_back(std::move(write));
  }
  return list;
}

}  // namespace cutegen::recipes
