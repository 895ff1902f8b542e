// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <unordered_set>

#include "core/codec.h"

namespace cutegen {
namespace {

constexpr size_t kMaxNodes = 200'000;
constexpr size_t kMaxDims = 64;

Json value_json(const Value& v) {
  return {{"name", v.name}, {"dtype", to_string(v.dtype)}, {"shape", v.shape}};
}

Json size_json(const SizeArgument& s) {
  return {{"index", s.index}, {"tensor", s.tensor}, {"dim", s.dim}};
}

Json node_json(const Node& n) {
  Json args = Json::array();
  for (const Json& a : n.args) args.push_back(a);
  Json out{{"id", n.id},
           {"op", n.op},
           {"args", args},
           {"kwargs", n.kwargs},
           {"outputs", codec::array_of(n.outputs, value_json)},
           {"flops", n.flops}};
  if (!n.sizes.empty()) out["sizes"] = codec::array_of(n.sizes, size_json);
  return out;
}

Result<SizeArgument> size_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CG_TRY(int64_t index, r.integer("index"));
  CG_TRY(std::string tensor, r.string("tensor"));
  CG_TRY(int64_t dim, r.integer("dim"));
  CG_CHECK(r.finish());
  if (index < 0 || dim < -1 || dim >= static_cast<int64_t>(kMaxDims))
    return user_error("there is no argument or axis with this number", where);
  return SizeArgument{static_cast<size_t>(index), std::move(tensor), static_cast<int>(dim)};
}

Result<Value> value_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Value v;
  CG_TRY(v.name, r.string("name"));
  CG_TRY(std::string dtype, r.string("dtype"));
  CG_TRY(v.dtype, codec::at(dtype_from_name(dtype), r.place("dtype")));
  CG_TRY(Json shape, r.array("shape"));
  CG_TRY(v.shape, codec::integers(shape, r.place("shape"), 0, kMaxDims));
  CG_CHECK(r.finish());
  return v;
}

Result<Node> node_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Node n;
  CG_TRY(n.id, r.string("id"));
  CG_TRY(n.op, r.string("op"));
  CG_TRY(Json args, r.array("args"));
  n.args.assign(args.begin(), args.end());
  if (r.has("kwargs")) {
    CG_TRY(n.kwargs, r.object("kwargs"));
  }
  CG_TRY(n.outputs, codec::list<Value>(r, "outputs", 4096, value_from));
  CG_TRY(n.flops, r.number_or("flops", 0));
  if (!(n.flops >= 0)) return user_error("flops must not be negative", r.place("flops"));
  if (r.has("sizes")) {
    CG_TRY(n.sizes, codec::list<SizeArgument>(r, "sizes", kMaxDims, size_from));
  }
  CG_CHECK(r.finish());
  return n;
}

using Known = std::unordered_set<std::string>;

// Every {"ref": NAME} inside an argument must name an earlier value.
Result<void> check_refs(const Json& arg, const Known& known, const std::string& where) {
  if (arg.is_object() && arg.contains("ref")) {
    const Json& ref = arg["ref"];
    if (!ref.is_string()) return user_error("expected a value's name", where + "/ref");
    if (!known.contains(ref.get<std::string>()))
      return user_error("unknown value '" + ref.get<std::string>() + "'", where + "/ref",
                        "values are placeholders and outputs of earlier nodes");
  } else if (arg.is_structured()) {
    size_t i = 0;
    for (const auto& [key, item] : arg.items())
      CG_CHECK(check_refs(item, known, where + "/" + (arg.is_array() ? std::to_string(i++) : key)));
  }
  return {};
}

Result<void> check_graph(const Graph& g) {
  Known known;
  auto add = [&](const Value& v, const std::string& where) -> Result<void> {
    if (!known.insert(v.name).second)
      return user_error("value '" + v.name + "' occurs twice", where);
    return {};
  };
  for (const Value& v : g.placeholders) CG_CHECK(add(v, "graph#/placeholders"));
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    std::string where = fmt::format("graph#/nodes/{}", i);
    for (size_t a = 0; a < g.nodes[i].args.size(); ++a)
      CG_CHECK(check_refs(g.nodes[i].args[a], known, fmt::format("{}/args/{}", where, a)));
    CG_CHECK(check_refs(g.nodes[i].kwargs, known, where + "/kwargs"));
    for (const SizeArgument& s : g.nodes[i].sizes) {
      const Value* of = g.find(s.tensor);
      if (!of || s.index >= g.nodes[i].args.size() ||
          !g.nodes[i].args[s.index].is_number_integer() ||
          s.dim >= static_cast<int>(of->shape.size()))
        return user_error("expected a number or the size of a tensor", where + "/sizes");
    }
    for (const Value& v : g.nodes[i].outputs) CG_CHECK(add(v, where + "/outputs"));
  }
  for (const std::string& name : g.outputs)
    if (!known.contains(name)) return user_error("unknown value '" + name + "'", "graph#/outputs");
  return {};
}

}  // namespace

std::string SizeArgument::text() const {
  return dim < 0 ? fmt::format("size({})", tensor) : fmt::format("dim({},{})", tensor, dim);
}

const Node* Graph::producer(const std::string& value) const {
  for (const Node& n : nodes)
    for (const Value& v : n.outputs)
      if (v.name == value) return &n;
  return nullptr;
}

const Value* Graph::find(const std::string& value) const {
  for (const Value& v : placeholders)
    if (v.name == value) return &v;
  for (const Node& n : nodes)
    for (const Value& v : n.outputs)
      if (v.name == value) return &v;
  return nullptr;
}

Json to_json(const Graph& graph) {
  return {{"placeholders", codec::array_of(graph.placeholders, value_json)},
          {"nodes", codec::array_of(graph.nodes, node_json)},
          {"outputs", graph.outputs},
          {"warnings", graph.warnings}};
}

Result<Graph> graph_from_json(const Json& json) {
  ObjectReader r(json, "graph#");
  Graph g;
  CG_TRY(g.placeholders, codec::list<Value>(r, "placeholders", kMaxNodes, value_from));
  CG_TRY(g.nodes, codec::list<Node>(r, "nodes", kMaxNodes, node_from));
  CG_TRY(g.outputs, r.strings("outputs"));
  if (r.has("warnings")) {
    CG_TRY(g.warnings, r.strings("warnings"));
  }
  CG_CHECK(r.finish());
  CG_CHECK(check_graph(g));
  return g;
}

}  // namespace cutegen
