// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/pointwise.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "recipes/graph/formulas.h"

namespace cutegen::recipes {
namespace {

// Fills a formula with a node's arguments.
class Filler {
 public:
  explicit Filler(const Node& node, bool integers = false) : node_(node), integers_(integers) {}

  // Returns the text of one argument: an operand's placeholder or a literal.
  Result<std::string> text(const Json& value, const std::string& what) {
    if (auto name = reference(value)) {
      for (size_t i = 0; i < result_.operands.size(); ++i)
        if (result_.operands[i] == *name) return fmt::format("{{{}}}", i);
      result_.operands.push_back(*name);
      return fmt::format("{{{}}}", result_.operands.size() - 1);
    }
    if (auto constant = number(value); constant && integers_ && *constant == std::trunc(*constant))
      return fmt::format("int64_t({})", int64_t(*constant));
    if (auto constant = number(value); constant && !integers_) return literal(*constant);
    return unsupported_error(
        fmt::format("{}: argument {} is neither a tensor nor a number", node_.op, what), node_.id);
  }

  Result<Pointwise> fill(const std::string& formula) {
    std::string code;
    for (size_t at = 0; at < formula.size();) {
      if (formula[at] != '{') {
        code += formula[at++];
        continue;
      }
      size_t end = formula.find('}', at);
      CG_TRY(std::string piece, placeholder(formula.substr(at + 1, end - at - 1)));
      code += piece;
      at = end + 1;
    }
    result_.code = std::move(code);
    return std::move(result_);
  }

 private:
  Result<std::string> placeholder(const std::string& spec) {
    size_t colon = spec.find(':'), slash = spec.find('/');
    std::string head = spec.substr(0, colon);
    size_t index = std::stoul(head);
    std::string keyword = slash == std::string::npos ? "" : head.substr(slash + 1);
    for (const SizeArgument& s : node_.sizes)
      if (s.index == index && s.known()) return text(size_ref(s), keyword);
    Json value = argument(node_, index, keyword);
    if (value.is_null() && colon != std::string::npos)
      return literal(std::stod(spec.substr(colon + 1)));
    return text(value, keyword.empty() ? std::to_string(index) : keyword);
  }

  const Node& node_;
  bool integers_;
  Pointwise result_;
};

Result<Pointwise> lower_power(const Node& node) {
  Json exponent = argument(node, 1, "exponent");
  auto e = number(exponent);
  const std::map<double, const char*> exact{{0, "1.0f"},
                                            {1, "{0}"},
                                            {2, "cutegen::square({0})"},
                                            {3, "cutegen::cube({0})"},
                                            {4, "cutegen::square(cutegen::square({0}))"},
                                            {0.5, "sqrtf({0})"},
                                            {0.25, "cutegen::power_of_quarters<1>({0})"},
                                            {0.75, "cutegen::power_of_quarters<3>({0})"},
                                            {1.5, "cutegen::power_of_quarters<6>({0})"},
                                            {-0.5, "cutegen::rsqrt({0})"},
                                            {-1, "cutegen::reciprocal({0})"},
                                            {-2, "cutegen::reciprocal(cutegen::square({0}))"}};
  if (e && node.sizes.empty() && exact.count(*e) && reference(argument(node, 0, "self")))
    return Filler(node).fill(exact.at(*e));
  return Filler(node).fill("powf({0/self}, {1/exponent})");
}

Result<Pointwise> lower_division(const Node& node) {
  Json mode = argument(node, 2, "rounding_mode");
  if (mode == "floor" || base_name(node.op) == "floor_divide")
    return Filler(node).fill("floorf({0} / {1/other})");
  if (mode == "trunc") return Filler(node).fill("truncf({0} / {1/other})");
  return Filler(node).fill("{0} / {1/other}");
}

// Lowers add, sub and rsub: self + alpha * other and the like.
Result<Pointwise> lower_sum(const Node& node, const std::string& base) {
  double alpha = number(argument(node, 2, "alpha")).value_or(1);
  std::string factor = alpha == 1 ? "" : literal(alpha) + " * ";
  if (base == "add") return Filler(node).fill("{0} + " + factor + "{1/other}");
  if (base == "sub") return Filler(node).fill("{0} - " + factor + "{1/other}");
  return Filler(node).fill("{1/other} - " + factor + "{0}");  // rsub
}

Result<Pointwise> lower_clamp(const Node& node) {
  Json low = argument(node, 1, "min"), high = argument(node, 2, "max");
  if (low.is_null()) return Filler(node).fill("cutegen::clamp_max({0}, {2/max})");
  if (high.is_null()) return Filler(node).fill("cutegen::clamp_min({0}, {1/min})");
  return Filler(node).fill("cutegen::clamp({0}, {1/min}, {2/max})");
}

// A change of dtype rounds as a store to that dtype would.
Result<Pointwise> lower_cast(const Node& node) {
  DType to = node.outputs.front().dtype;
  if (to == DType::f32 || to == DType::f64) return Filler(node).fill("{0}");
  if (to == DType::f16) return Filler(node).fill("cutegen::round_to<half_t>({0})");
  if (to == DType::bf16) return Filler(node).fill("cutegen::round_to<bfloat16_t>({0})");
  if (to == DType::f8e4m3) return Filler(node).fill("cutegen::round_to<float_e4m3_t>({0})");
  if (to == DType::f8e5m2) return Filler(node).fill("cutegen::round_to<float_e5m2_t>({0})");
  if (to == DType::i32 || to == DType::i64 || to == DType::i8 || to == DType::u8)
    return Filler(node).fill("truncf({0})");
  if (to == DType::boolean) {
    CG_TRY(Pointwise p, Filler(node).fill("({0} != 0.0f)"));
    p.boolean = true;
    return p;
  }
  return unsupported_error(fmt::format("{}: a cast to {}", node.op, to_string(to)), node.id);
}

Result<Pointwise> lower_bitwise(const Node& node, const std::string& base) {
  if (node.outputs.front().dtype != DType::boolean)
    return unsupported_error(fmt::format("{} on integers", node.op), node.id);
  CG_TRY(Pointwise p, Filler(node).fill(base == "bitwise_not"   ? "!{0}"
                                        : base == "bitwise_and" ? "({0} && {1})"
                                        : base == "bitwise_or"  ? "({0} || {1})"
                                                                : "(!{0} != !{1})"));
  p.boolean = true;
  return p;
}

// A loss without a reduction is pointwise: its result has its operand's shape.
bool reduces_to_scalar(const Node& node, const std::string& base) {
  bool weighted = base == "binary_cross_entropy";
  bool loss = base.size() > 5 && base.compare(base.size() - 5, 5, "_loss") == 0;
  return (loss || weighted) &&
         number(argument(node, weighted ? 3 : 2, "reduction")).value_or(0) != 0;
}

// A shift of integers by a constant that is less than their number of bits; empty for other shifts,
// which C++ does not define.
std::string shift_formula(const Node& node, const std::string& base) {
  const bool right = base == "__rshift__" || base == "bitwise_right_shift",
             left = base == "__lshift__" || base == "bitwise_left_shift";
  const auto by = number(argument(node, 1, "other"));
  const auto bits = double(8 * size_of(node.outputs.front().dtype));
  if (!(right || left) || !by || *by < 0 || *by >= bits) return "";
  return fmt::format("({{0}} {} {})", right ? ">>" : "<<", int(*by));
}

// Arithmetic on integers, in 64 bits; a result of fewer bits wraps around as a store does.
Result<std::optional<Pointwise>> lower_integers(const Node& node, const std::string& base) {
  const DType to = node.outputs.front().dtype;
  std::string formula;
  const double alpha = number(argument(node, 2, "alpha")).value_or(1);
  const std::string factor = alpha == 1 ? "" : fmt::format("int64_t({}) * ", int64_t(alpha));
  if (base == "add") formula = "{0} + " + factor + "{1/other}";
  if (base == "sub") formula = "{0} - " + factor + "{1/other}";
  if (base == "rsub") formula = "{1/other} - " + factor + "{0}";
  if (base == "div" && argument(node, 2, "rounding_mode") == "floor")
    formula = "cutegen::floor_div({0}, {1/other})";
  if (base == "div" && argument(node, 2, "rounding_mode") == "trunc") formula = "{0} / {1/other}";
  if (base == "clamp" && !argument(node, 1, "min").is_null() && !argument(node, 2, "max").is_null())
    formula = "({0} < {1/min} ? {1/min} : {0} > {2/max} ? {2/max} : {0})";
  else if (base == "clamp")
    formula = argument(node, 1, "min").is_null() ? "({0} < {2/max} ? {0} : {2/max})"
                                                 : "({0} > {1/min} ? {0} : {1/min})";
  if (const char* known = integer_formula(base)) formula = known;
  if (formula.empty() && node.sizes.empty()) formula = shift_formula(node, base);
  if (formula.empty()) return std::optional<Pointwise>();
  CG_TRY(Pointwise p, Filler(node, true).fill(formula));
  p.integer = true;
  if (to != DType::i64) p.code = fmt::format("int64_t({}({}))", device_type(to), p.code);
  return std::optional<Pointwise>(std::move(p));
}

// round(x, decimals=d)
Result<Pointwise> lower_rounding(const Node& node) {
  const double decimals = number(argument(node, 1, "decimals")).value_or(0);
  const double scale = std::pow(10.0, std::abs(decimals));
  return Filler(node).fill(decimals > 0
                               ? fmt::format("(rintf({{0}} * {0}) / {0})", literal(scale))
                               : fmt::format("(rintf({{0}} / {0}) * {0})", literal(scale)));
}

// nan_to_num(x, nan, posinf, neginf): infinities become the largest numbers of the dtype.
Result<Pointwise> lower_undefined(const Node& node) {
  const DType dtype = node.outputs.front().dtype;
  const double most = dtype == DType::f16    ? 65504
                      : dtype == DType::bf16 ? 3.3895313892515355e38
                                             : double(std::numeric_limits<float>::max());
  const auto value = [&](size_t index, const char* name, double otherwise) {
    return literal(number(argument(node, index, name)).value_or(otherwise));
  };
  return Filler(node).fill(fmt::format("cutegen::nan_to_num({{0}}, {}, {}, {})", value(1, "nan", 0),
                                       value(2, "posinf", most), value(3, "neginf", -most)));
}

Result<std::optional<Pointwise>> some(Result<Pointwise> r) {
  if (!r) return fail(r.error());
  return std::optional<Pointwise>(std::move(*r));
}

}  // namespace

Json size_ref(const SizeArgument& size) {
  const std::string plus = size.plus == 0 ? "" : fmt::format("{:+}", size.plus);
  return {{"ref", fmt::format("{}{}{} {}", kSize, size.dim, plus, size.tensor)}};
}

std::string base_name(const std::string& op) {
  size_t first = op.find('.');
  if (first == std::string::npos) return op;
  size_t second = op.find('.', first + 1);
  std::string base =
      op.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  if (base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_') base.pop_back();
  return base;
}

bool is_in_place(const std::string& op) {
  size_t first = op.find('.');
  if (first == std::string::npos) return false;
  size_t second = op.find('.', first + 1);
  if (second == std::string::npos) second = op.size();
  return second > first + 2 && op[second - 1] == '_' && op[second - 2] != '_';
}

Json argument(const Node& node, size_t index, const std::string& keyword) {
  if (!keyword.empty() && node.kwargs.is_object() && node.kwargs.contains(keyword))
    return node.kwargs.at(keyword);
  return index < node.args.size() ? node.args[index] : Json();
}

std::optional<double> number(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1.0 : 0.0;
  if (json.is_number()) return json.get<double>();
  if (json.is_object() && json.contains("float") && json.at("float").is_string()) {
    const auto text = json.at("float").get<std::string>();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

std::optional<std::string> reference(const Json& json) {
  if (json.is_object() && json.contains("ref") && json.at("ref").is_string())
    return json.at("ref").get<std::string>();
  return std::nullopt;
}

std::string literal(double value) {
  auto f = float(value);
  if (std::isnan(f)) return "cutegen::not_a_number()";
  if (std::isinf(f)) return f > 0 ? "cutegen::infinity()" : "(-cutegen::infinity())";
  std::string text = fmt::format("{}", f);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  text += "f";
  return std::signbit(f) ? "(" + text + ")" : text;
}

bool is_integer(DType dtype) {
  return !is_floating(dtype) && dtype != DType::boolean;
}

std::string device_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f16:
      return "half_t";
    case DType::bf16:
      return "bfloat16_t";
    case DType::boolean:
      return "bool";
    case DType::i64:
      return "int64_t";
    case DType::i32:
      return "int";
    case DType::i8:
      return "int8_t";
    case DType::u8:
      return "uint8_t";
    case DType::f8e4m3:
      return "float_e4m3_t";
    case DType::f8e5m2:
      return "float_e5m2_t";
    default:
      return "";
  }
}

Result<std::optional<Pointwise>> lower_pointwise(const Node& node) {
  if (node.op.rfind("aten.", 0) != 0 || node.outputs.empty()) return std::optional<Pointwise>();
  std::string base = base_name(node.op);
  const DType to = node.outputs.front().dtype;
  if (is_integer(to) && !device_type(to).empty()) {
    CG_TRY(auto p, lower_integers(node, base));
    if (p) return p;
  }
  if (base == "pow") return some(lower_power(node));
  if (base == "div" || base == "true_divide" || base == "floor_divide")
    return some(lower_division(node));
  if (base == "add" || base == "sub" || base == "rsub") return some(lower_sum(node, base));
  if (base == "clamp" || base == "clip") return some(lower_clamp(node));
  if (base == "_to_copy" || base == "to") return some(lower_cast(node));
  if (base.rfind("bitwise_", 0) == 0) return some(lower_bitwise(node, base));
  if (base == "gelu")
    return some(Filler(node).fill(argument(node, 1, "approximate") == "tanh"
                                      ? "cutegen::gelu_tanh({0})"
                                      : "cutegen::gelu({0})"));
  if (base == "round" && number(argument(node, 1, "decimals")).value_or(0) != 0)
    return some(lower_rounding(node));
  if (base == "nan_to_num" && is_floating(to)) return some(lower_undefined(node));
  if (base == "binary_cross_entropy" && !argument(node, 2, "weight").is_null())
    return unsupported_error(node.op + " with weights", node.id);
  const char* formula = find_formula(base);
  if (!formula || reduces_to_scalar(node, base)) return std::optional<Pointwise>();
  CG_TRY(Pointwise p, Filler(node).fill(formula));
  p.boolean = gives_boolean(base);
  return std::optional<Pointwise>(std::move(p));
}

}  // namespace cutegen::recipes
