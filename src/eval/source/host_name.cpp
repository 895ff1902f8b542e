// SPDX-License-Identifier: Apache-2.0
// Expressions that begin with a name, and members of values.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/source/host_expression.h"

namespace cutegen::eval {
namespace {

using Kind = HostValue::Kind;

const std::map<std::string_view, int64_t>& bytes_of_types() {
  static const std::map<std::string_view, int64_t> table{
      {"char", 1},     {"int8_t", 1},   {"uint8_t", 1},        {"bool", 1},
      {"short", 2},    {"int16_t", 2},  {"uint16_t", 2},       {"half", 2},
      {"__half", 2},   {"Half", 2},     {"BFloat16", 2},       {"nv_bfloat16", 2},
      {"int", 4},      {"unsigned", 4}, {"__nv_bfloat16", 2},  {"int32_t", 4},
      {"uint32_t", 4}, {"float", 4},    {"half2", 4},          {"__half2", 4},
      {"double", 8},   {"int64_t", 8},  {"__nv_bfloat162", 4}, {"nv_bfloat162", 4},
      {"uint64_t", 8}, {"size_t", 8},   {"long", 8},           {"float2", 8},
      {"int2", 8},     {"uint2", 8},    {"float4", 16},        {"int4", 16},
      {"uint4", 16},   {"double2", 16}, {"longlong2", 16},     {"ulonglong2", 16}};
  return table;
}

// PyTorch's names of dtypes, after the last "::".
const std::map<std::string_view, DType>& named_dtypes() {
  static const std::map<std::string_view, DType> table{
      {"kHalf", DType::f16},      {"kFloat16", DType::f16},  {"Half", DType::f16},
      {"kBFloat16", DType::bf16}, {"BFloat16", DType::bf16}, {"kFloat", DType::f32},
      {"kFloat32", DType::f32},   {"Float", DType::f32},     {"kDouble", DType::f64},
      {"kFloat64", DType::f64},   {"Double", DType::f64},    {"kInt", DType::i32},
      {"kInt32", DType::i32},     {"Int", DType::i32},       {"kLong", DType::i64},
      {"kInt64", DType::i64},     {"Long", DType::i64}};
  return table;
}

bool is_pointer_call(const std::string& name) {
  return name == "data_ptr" || name == "mutable_data_ptr" || name == "const_data_ptr" ||
         name == "data";
}

bool takes_template_arguments(const std::string& name) {
  return is_pointer_call(name) || name == "min" || name == "max" || name == "ceil_div";
}

class HostName {
 public:
  explicit HostName(HostCursor& cursor) : c_(cursor) {}

  Result<HostValue> read();

 private:
  Result<HostValue> named_cast();
  Result<HostValue> size_of_type();
  Result<HostValue> call(const std::string& name, bool qualified, const Token& at);
  Result<HostValue> lambda(const std::vector<Token>& spelled, std::vector<HostValue> values,
                           const Token& at);
  Result<HostValue> inlined(const std::vector<Token>& tokens, TokenRange parameters,
                            TokenRange body, std::vector<HostValue> values, const Token& at);
  Result<HostValue> smallest(const char* function, std::vector<HostValue> values, const Token& at);
  Result<HostValue> variable(const std::string& name, const Token& at) const;

  HostCursor& c_;
};

Result<HostValue> HostName::read() {
  const Token& first = c_.here();
  if (first.is("sizeof")) return size_of_type();
  if (first.is("static_cast") || first.is("reinterpret_cast") || first.is("const_cast"))
    return named_cast();
  if (c_.mark("::")) ++c_.at;
  std::string name = c_.here().text;
  bool qualified = false;
  const size_t begin = c_.at++;
  while (c_.at + 1 < c_.end && c_.mark("::") && c_.tokens[c_.at + 1].kind == Token::Kind::word) {
    name = c_.tokens[c_.at + 1].text;
    qualified = true;
    c_.at += 2;
  }
  const bool templated =
      takes_template_arguments(name) || !c_.context.outline.defined(name).empty();
  if (c_.mark("<") && templated) c_.skip_template_arguments();
  const HostType type = host_type(c_.tokens, {begin, c_.at}, c_.scope);
  const bool converts = type != HostType::unknown && type != HostType::any;
  if (converts && (c_.mark("(") || c_.mark("{"))) {
    CG_TRY(auto values, HostExpression(c_).arguments());
    if (type == HostType::sizes && values.size() <= 3) return host_sizes(std::move(values));
    if (values.size() != 1) return c_.context.error(first, "one value is needed");
    return host_cast(c_.context, type, std::move(values[0]), first);
  }
  if (c_.mark("(")) return call(name, qualified, first);
  return variable(name, first);
}

Result<HostValue> HostName::named_cast() {
  const Token& first = c_.here();
  const size_t from = ++c_.at;
  if (!c_.mark("<")) return c_.context.error(first, "a cast needs a type");
  int depth = 0;
  for (; c_.more(); ++c_.at) {
    depth += c_.mark("<") ? 1 : c_.mark(">") ? -1 : 0;
    if (depth == 0) break;
  }
  if (!c_.more()) return c_.context.error(first, "a cast needs a type");
  const HostType type = host_type(c_.tokens, {from + 1, c_.at}, c_.scope);
  const bool pointer = c_.tokens[c_.at - 1].mark('*');
  ++c_.at;
  CG_TRY(auto values, HostExpression(c_).arguments());
  if (values.size() != 1) return c_.context.error(first, "a cast needs one value");
  return host_cast(c_.context, pointer ? HostType::pointer : type, std::move(values[0]), first);
}

Result<HostValue> HostName::size_of_type() {
  const Token& first = c_.here();
  ++c_.at;
  const size_t close = c_.mark("(") ? closing(c_.tokens, c_.at, c_.end) : c_.end;
  if (close >= c_.end || close == c_.at + 1) return c_.context.error(first, "sizeof needs a type");
  std::string name = c_.tokens[close - 1].text;
  const bool pointer = c_.tokens[close - 1].mark('*');
  const auto alias = c_.scope.types.find(name);
  if (alias != c_.scope.types.end() && !alias->second.empty()) name = alias->second.back().text;
  c_.at = close + 1;
  if (pointer) return host_integer(8);
  const auto known = bytes_of_types().find(name);
  if (known == bytes_of_types().end())
    return c_.context.error(first, fmt::format("cutegen does not know the size of '{}'", name));
  return host_integer(known->second);
}

// min and max of two or more values, or of a list in braces.
Result<HostValue> HostName::smallest(const char* function, std::vector<HostValue> values,
                                     const Token& at) {
  if (values.size() == 1 && values[0].kind == Kind::sizes) values = values[0].sizes;
  if (values.size() < 2) return c_.context.error(at, "two values are needed");
  const bool least = std::string_view(function) == "min";
  HostValue out = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (out.number && values[i].number) {
      out = host_integer(least ? std::min(*out.number, *values[i].number)
                               : std::max(*out.number, *values[i].number));
      continue;
    }
    auto next = host_call(function, {out, values[i]});
    if (!next) return fail(c_.context.placed(next.error(), at));
    out = std::move(*next);
  }
  return out;
}

Result<HostValue> HostName::call(const std::string& name, bool qualified, const Token& at) {
  if (name == "getCurrentDeviceProperties") {
    c_.at = closing(c_.tokens, c_.at, c_.end) + 1;
    const bool sms =
        c_.at + 1 < c_.end && c_.mark("->") && c_.tokens[c_.at + 1].is("multiProcessorCount");
    if (!sms) return c_.context.error(at, "of the device, a plan knows only the number of SMs");
    c_.at += 2;
    return plan_value("gpu.sms");
  }
  const auto helpers = c_.context.outline.defined(name);
  const auto local = c_.scope.variables.find(name);
  const bool is_local = local != c_.scope.variables.end();
  if (helpers.size() > 1)
    return c_.context.error(at, fmt::format("the file defines '{}' more than once", name));
  const bool known = name == "min" || name == "max" || (name == "ceil_div" && qualified);
  if (!known && helpers.empty() && !is_local)
    return c_.context.error(at, fmt::format("cutegen cannot see what '{}' returns", name));
  CG_TRY(auto values, HostExpression(c_).arguments());
  if (is_local && local->second.kind == Kind::function)
    return lambda(local->second.spelled, std::move(values), at);
  if (helpers.size() == 1) {
    const SourceFunction& f = *helpers.front();
    return inlined(c_.context.outline.tokens, {f.open + 1, f.close}, {f.body + 1, f.end - 1},
                   std::move(values), at);
  }
  if (name != "ceil_div") return smallest(name == "min" ? "min" : "max", std::move(values), at);
  auto out = host_call("ceil_div", values);
  if (!out) return fail(c_.context.placed(out.error(), at));
  if (values.size() != 2) return c_.context.error(at, "two values are needed");
  return out;
}

Result<HostValue> HostName::lambda(const std::vector<Token>& spelled, std::vector<HostValue> values,
                                   const Token& at) {
  const bool plain =
      spelled.size() > 3 && spelled[0].mark('[') && spelled[1].mark(']') && spelled[2].mark('(');
  const size_t close = plain ? closing(spelled, 2, spelled.size()) : spelled.size();
  size_t body = close;
  while (body < spelled.size() && !spelled[body].mark('{')) ++body;
  if (body >= spelled.size())
    return c_.context.error(at, fmt::format("'{}' is no lambda without captures", at.text));
  return inlined(spelled, {3, close}, {body + 1, spelled.size() - 1}, std::move(values), at);
}

// The value of a function whose body is `return EXPRESSION;`.
Result<HostValue> HostName::inlined(const std::vector<Token>& tokens, TokenRange parameters,
                                    TokenRange body, std::vector<HostValue> values,
                                    const Token& at) {
  const HostLevel level(c_.context.depth);
  const bool one_return = body.second >= body.first + 3 && tokens[body.first].is("return") &&
                          tokens[body.second - 1].mark(';');
  if (!one_return || c_.context.depth > kMostNesting)
    return c_.context.error(at, fmt::format("'{}' does more than return an expression", at.text));
  HostScope inside;
  size_t i = 0;
  for (const auto& [from, to] : comma_parts(tokens, parameters)) {
    if (i < values.size() && to > from && tokens[to - 1].kind == Token::Kind::word)
      inside.variables[tokens[to - 1].text] = values[i];
    ++i;
  }
  if (i != values.size()) return c_.context.error(at, "the number of arguments does not fit");
  return host_expression(c_.context, inside, tokens, {body.first + 1, body.second - 1});
}

Result<HostValue> HostName::variable(const std::string& name, const Token& at) const {
  if (at.is("true") || at.is("false")) return host_integer(at.is("true") ? 1 : 0);
  if (const auto found = c_.scope.variables.find(name); found != c_.scope.variables.end()) {
    if (found->second.kind == Kind::unreadable) return fail(found->second.why);
    return found->second;
  }
  if (const auto define = c_.context.defines.find(name); define != c_.context.defines.end())
    return plan_value(define->second);
  const auto constant = c_.context.outline.constants.find(name);
  if (constant != c_.context.outline.constants.end() && !constant->second.defined_twice) {
    const HostScope empty;
    return host_expression(c_.context, empty, c_.context.outline.tokens, constant->second.value);
  }
  const auto dtype = named_dtypes().find(name);
  if (dtype != named_dtypes().end()) {
    HostValue out{.kind = Kind::dtype};
    out.dtype = dtype->second;
    return out;
  }
  const bool twice =
      constant != c_.context.outline.constants.end() || c_.context.outline.macros.contains(name);
  return c_.context.error(at, twice ? fmt::format("the file defines '{}' more than once", name)
                                    : fmt::format("cutegen does not know the value of '{}'", name));
}

class TensorMembers {
 public:
  explicit TensorMembers(HostCursor& cursor) : c_(cursor) {}

  Result<HostValue> read(HostValue value);

 private:
  Result<HostValue> member_of_tensor(const TensorInfo& tensor, HostValue value, const Token& name);
  Result<HostValue> axis(const char* function, const TensorInfo& tensor, const HostValue& value,
                         const Token& at) const;

  HostCursor& c_;
};

Result<HostValue> TensorMembers::read(HostValue value) {
  while (c_.mark(".") || c_.mark("->") || c_.mark("[")) {
    const Token& dot = c_.here();
    if (c_.mark("[") || c_.at + 1 >= c_.end)
      return c_.context.error(dot, "cutegen cannot read an index");
    const Token& name = c_.tokens[c_.at + 1];
    c_.at += 2;
    if (value.kind == Kind::sizes) {
      const size_t axis = name.is("x") ? 0 : name.is("y") ? 1 : name.is("z") ? 2 : 3;
      if (axis == 3) return c_.context.error(name, "a dim3 has x, y and z");
      value = HostValue(value.sizes[axis]);
      continue;
    }
    const TensorInfo* tensor =
        value.kind == Kind::tensor ? c_.context.tensor(value.tensor) : nullptr;
    if (!tensor)
      return c_.context.error(name, fmt::format("cutegen cannot read the member '{}'", name.text));
    CG_TRY(value, member_of_tensor(*tensor, std::move(value), name));
  }
  return value;
}

Result<HostValue> TensorMembers::member_of_tensor(const TensorInfo& tensor, HostValue value,
                                                  const Token& name) {
  if (c_.mark("<")) c_.skip_template_arguments();
  CG_TRY(auto values, HostExpression(c_).arguments());
  const std::string& member = name.text;
  if (is_pointer_call(member) && values.empty()) {
    value.kind = Kind::pointer;
    return value;
  }
  if (member == "contiguous" && values.empty()) return value;
  if ((member == "numel" || member == "nbytes") && values.empty()) {
    HostValue count = plan_value("size(" + value.tensor + ")");
    return member == "numel" ? Result<HostValue>(count)
                             : binary("*", count, host_integer(int64_t(size_of(tensor.dtype))));
  }
  if ((member == "dim" || member == "ndimension") && values.empty())
    return host_integer(int64_t(tensor.shape.size()));
  if ((member == "element_size" || member == "itemsize") && values.empty())
    return host_integer(int64_t(size_of(tensor.dtype)));
  if ((member == "scalar_type" || member == "dtype") && values.empty()) {
    HostValue out{.kind = Kind::dtype};
    out.dtype = tensor.dtype;
    return out;
  }
  if ((member == "size" || member == "stride") && values.size() == 1)
    return axis(member == "size" ? "dim" : "stride", tensor, values[0], name);
  if ((member == "sizes" || member == "strides") && values.empty() && c_.mark("[")) {
    const size_t close = closing(c_.tokens, c_.at, c_.end);
    CG_TRY(HostValue which,
           host_expression(c_.context, c_.scope, c_.tokens, {c_.at + 1, std::min(close, c_.end)}));
    c_.at = std::min(close + 1, c_.end);
    return axis(member == "sizes" ? "dim" : "stride", tensor, which, name);
  }
  return c_.context.error(name, fmt::format("cutegen cannot read '{}' of a tensor", member));
}

Result<HostValue> TensorMembers::axis(const char* function, const TensorInfo& tensor,
                                      const HostValue& value, const Token& at) const {
  const auto rank = int64_t(tensor.shape.size());
  if (!value.number) return c_.context.error(at, "the axis is no constant");
  if (*value.number < -rank || *value.number >= rank)
    return c_.context.error(at, fmt::format("'{}' has {} axes", tensor.name, rank));
  return plan_value(fmt::format("{}({},{})", function, tensor.name, *value.number));
}

}  // namespace

Result<HostValue> read_host_name(HostCursor& cursor) {
  return HostName(cursor).read();
}

Result<HostValue> read_host_members(HostCursor& cursor, HostValue value) {
  return TensorMembers(cursor).read(std::move(value));
}

}  // namespace cutegen::eval
