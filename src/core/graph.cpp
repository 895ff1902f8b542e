// SPDX-License-Identifier: Apache-2.0
#include "core/graph.h"

#include <fmt/format.h>

#include <unordered_set>

namespace cutegen {
namespace {

constexpr size_t kMaxNodes = 200'000;
constexpr size_t kMaxDims = 64;

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

// Whether the argument (item 0), or element number `item` of a list (from 1), is an integer.
bool has_number(const Json& argument, int item) {
  if (item == 0) return argument.is_number_integer();
  return argument.is_array() && size_t(item) <= argument.size() &&
         argument[size_t(item) - 1].is_number_integer();
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
      const bool known = s.share || s.fixed ? s.tensor.empty()
                         : of               ? s.dim < int(of->shape.size())
                                            : !s.known();
      if (!known || s.index >= g.nodes[i].args.size() ||
          !has_number(g.nodes[i].args[s.index], s.item))
        return user_error("expected a number or the size of a tensor", where + "/sizes");
    }
    for (const Value& v : g.nodes[i].outputs) CG_CHECK(add(v, where + "/outputs"));
  }
  for (const std::string& name : g.outputs)
    if (!known.contains(name)) return user_error("unknown value '" + name + "'", "graph#/outputs");
  for (const auto& [tensor, name] : g.finals)
    if (!known.contains(name)) return user_error("unknown value '" + name + "'", "graph#/finals");
  return {};
}

}  // namespace

std::string SizeArgument::text() const {
  if (share) return "the same share of the axis";
  if (fixed) return "the same number at other sizes";
  if (!known()) return "another number at other sizes";
  const std::string size =
      dim < 0 ? fmt::format("size({})", tensor) : fmt::format("dim({},{})", tensor, dim);
  return plus == 0 ? size : fmt::format("({}{:+})", size, plus);
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

void fields(Fields& v, Value& x) {
  v("name", x.name);
  v.by_name("dtype", x.dtype, dtype_from_name);
  v("shape", x.shape, field::most(kMaxDims) + field::at_least(0));
}

void fields(Fields& v, SizeArgument& s) {
  v("index", s.index, field::at_least(0));
  v("tensor", s.tensor);
  v("dim", s.dim, field::between(-1, kMaxDims - 1));
  v("item", s.item, field::if_set + field::between(0, kMaxDims));
  v("plus", s.plus, field::may_lack + field::written_if(s.plus != 0));
  v("share", s.share, field::may_lack + field::written_if(s.share));
  v("fixed", s.fixed, field::may_lack + field::written_if(s.fixed));
}

void fields(Fields& v, Node& n) {
  v("id", n.id);
  v("op", n.op);
  v("args", n.args);
  v("kwargs", n.kwargs, field::may_lack + field::object);
  v("outputs", n.outputs, field::list(4096));
  v("flops", n.flops, field::may_lack + field::at_least(0));
  v("sizes", n.sizes, field::if_set + field::list(kMaxDims));
}

void fields(Fields& v, Graph& g) {
  v.document("graph#");
  v("placeholders", g.placeholders, field::list(kMaxNodes));
  v("nodes", g.nodes, field::list(kMaxNodes));
  v("outputs", g.outputs);
  v("finals", g.finals, field::may_lack + field::written_if(!g.finals.empty()));
  v("warnings", g.warnings, field::may_lack);
  if (v.reading()) v.check(check_graph(g), "nodes");
}

}  // namespace cutegen
