// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "recipes/nest/windowed.h"

namespace cutegen::recipes {
namespace {

bool transposed(const Fused& fused) {
  return fused.window->window.kind == WindowKind::transposed;
}

// Writes the numbers of the input, the result and the weights.
class Geometry {
 public:
  explicit Geometry(const Fused& fused)
      : fused_(fused), leaf_(*fused.window), window_(leaf_.window) {}

  Numbers write() {
    const Operand &in = leaf_.input, &w = leaf_.weight;
    numbers_.emplace_back("batches", size_text(fused_, in, 0));
    numbers_.emplace_back("in_n", stride_text(fused_, in, 0));
    numbers_.emplace_back("in_c", stride_text(fused_, in, 1));
    add_axes("in", "1", [&](size_t i) { return size_text(fused_, in, i + 2); });
    add_axes("in_s", "0", [&](size_t i) { return stride_text(fused_, in, i + 2); });
    add_axes("out", "1", [&](size_t i) { return fused_.axes[i + 2].extent; });
    if (window_.pools()) {
      numbers_.emplace_back("channels", size_text(fused_, in, 1));
      return std::move(numbers_);
    }
    numbers_.emplace_back("groups", groups_text(fused_));
    numbers_.emplace_back("in_of_group", in_of_group_text(fused_));
    numbers_.emplace_back("out_of_group", out_of_group_text(fused_));
    add_axes("kernel", "1", [&](size_t i) { return size_text(fused_, w, i + 2); });
    numbers_.emplace_back("weight_o", stride_text(fused_, w, 0));
    numbers_.emplace_back("weight_i", stride_text(fused_, w, 1));
    add_axes("weight", "0", [&](size_t i) { return stride_text(fused_, w, i + 2); });
    return std::move(numbers_);
  }

 private:
  void add_axes(const char* word, const std::string& missing,
                const std::function<std::string(size_t)>& text) {
    const size_t skipped = 3 - window_.rank();
    for (size_t i = 0; i < 3; ++i)
      numbers_.emplace_back(fmt::format("{}{}", word, i),
                            i < skipped ? missing : text(i - skipped));
  }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  const Window& window_;
  Numbers numbers_;
};

}  // namespace

Numbers geometry(const Fused& fused) {
  return Geometry(fused).write();
}

int64_t out_of_group(const Fused& fused) {
  return fused.axes[1].size / std::max<int64_t>(1, fused.window->window.groups);
}

// The groups as a size: modules whose groups are their channels have others at other shapes. The
// groups of a transposed convolution decide its output channels, so they stay constant.
std::string groups_text(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  if (leaf.window.groups == 1 || leaf.window.kind == WindowKind::transposed)
    return std::to_string(leaf.window.groups);
  return fmt::format("({})/({})", size_text(fused, leaf.input, 1),
                     size_text(fused, leaf.weight, 1));
}

// The largest offset of an element inside an image.
std::string last_of_image(const Fused& fused) {
  const Operand& in = fused.window->input;
  std::string sum;
  for (size_t i = 1; i <= fused.window->window.rank() + 1; ++i)
    sum += fmt::format("{}(({})-1)*({})", i == 1 ? "" : "+", size_text(fused, in, i),
                       stride_text(fused, in, i));
  return sum;
}

// Kernels have three axes; the missing ones come first and have size 1.
int64_t padded(const Shape& list, size_t axis, int64_t missing) {
  const size_t skipped = 3 - list.size();
  return axis < skipped ? missing : list[axis - skipped];
}

std::string in_of_group_text(const Fused& fused) {
  const Operand& w = fused.window->weight;
  return transposed(fused) ? size_text(fused, w, 0) + "/(" + groups_text(fused) + ")"
                           : size_text(fused, w, 1);
}

std::string out_of_group_text(const Fused& fused) {
  const Operand& w = fused.window->weight;
  return transposed(fused) ? size_text(fused, w, 1)
                           : size_text(fused, w, 0) + "/(" + groups_text(fused) + ")";
}

std::string add_numbers(Json& args, const Numbers& numbers) {
  std::string text;
  for (const auto& [word, expression] : numbers) {
    args.push_back({{"i64", expression}});
    text += (text.empty() ? "       int64_t " : ", int64_t ") + word;
  }
  return text;
}

Tail::Tail(const Fused& fused, By by) : fused_(fused), leaf_(*fused.window), code_(fused), by_(by) {
  for (const char* word : {"window", "n", "channel", "channel0", "p0", "p1", "p2", "sums", "pixels",
                           "at", "c", "left", "more", "read", "nearest", "result"})
    (void)code_.word(word);
  for (const FusedOutput& output : fused.outputs) results_.push_back(output.inst);
  for (int inst : code_.needed(results_, [](const Inst&) { return true; }))
    if (inst != leaf_.inst && at(inst).kind == InstKind::leaf) leaves_.push_back(inst);
}

std::string Tail::compute() {
  std::vector<std::string> params{"float " + code_.id(leaf_.inst)};
  for (int inst : leaves_)
    params.push_back(fmt::format("{} {}", value_type(at(inst)), code_.id(inst)));
  for (const auto& [word, expression] : fused_.sizes) params.push_back("int64_t " + word);
  std::string body, ends;
  for (const FusedOutput& output : fused_.outputs) {
    const std::string result = code_.word("result_" + name(output.operand));
    params.push_back(fmt::format("{}& {}", value_type(at(output.inst)), result));
    ends += fmt::format("  {} = {};\n", result, code_.use(output.inst));
  }
  for (int inst :
       code_.needed(results_, [](const Inst& i) { return i.kind == InstKind::pointwise; }))
    body += "  " + code_.statement(inst);
  return fmt::format("__device__ __forceinline__ void compute({}) {{\n{}{}}}", join(params, ", "),
                     body, ends);
}

std::string Tail::finish() {
  const bool placed = by_ == By::place;
  std::string loads, stores;
  std::vector<std::string> values{"window"};
  for (int inst : leaves_) {
    const Operand& o = operand(inst);
    const bool early = placed && varies(o);
    const std::string word = code_.word("r_" + name(o)), type = value_type(at(inst)),
                      from = element(o, name(o), placed && !early ? "nearest" : "c");
    if (early) {
      members_ += fmt::format("{} {};\n", type, word);
      reads_ += fmt::format("more.{} = cutegen::convert<{}>({});\n", word, type, from);
      values.push_back("more." + word);
    } else {
      loads += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", type, word, from);
      values.push_back(word);
    }
  }
  for (const auto& [word, expression] : fused_.sizes) values.push_back(word);
  for (const FusedOutput& output : fused_.outputs) {
    const std::string word = code_.word("r_" + name(output.operand)),
                      member = placed ? "result." + word : word;
    (placed ? results_of_place_ : loads) +=
        fmt::format("{} {};\n", value_type(at(output.inst)), word);
    stores += fmt::format("{} = cutegen::from_float<{}>({});\n",
                          element(output.operand, name(output.operand), "c"),
                          type_of(output.operand), member);
    values.push_back(member);
  }
  const std::string computed = loads + fmt::format("compute({});\n", join(values, ", "));
  if (!placed) return computed + stores;
  stores_ = stores;
  return computed;
}

std::string Tail::declare(Json& args) const {
  std::vector<std::string> list, seen;
  auto add = [&](const Operand& o, const char* constness) {
    const std::string& word = name(o);
    if (std::find(seen.begin(), seen.end(), word) != seen.end()) return;
    seen.push_back(word);
    args.push_back({{"tensor", word}});
    list.push_back(fmt::format("{}{}* __restrict__ {}", type_of(o), constness, word));
  };
  add(leaf_.input, " const");
  if (!leaf_.window.pools()) add(leaf_.weight, " const");
  for (int inst : leaves_) add(operand(inst), " const");
  for (const FusedOutput& output : fused_.outputs) add(output.operand, "");
  return join(list, ", ");
}

// Whether an operand differs from place to place. One that does not, such as a bias, stays in the
// L1 cache, so it is not read ahead: that would take registers.
bool Tail::varies(const Operand& o) const {
  for (int axis : o.axes)
    if (axis >= 0 && axis != 1) return true;
  return false;
}

// The element of an operand at the current place of the nest.
std::string Tail::element(const Operand& o, const std::string& word, const char* channel_of) {
  std::vector<std::string> terms;
  std::string channel;
  for (size_t i = 0; i < o.axes.size(); ++i) {
    if (o.axes[i] < 0) continue;
    const auto axis = static_cast<size_t>(o.axes[i]);
    const std::string place = axis == 0   ? "n"
                              : axis == 1 ? by_ == By::place ? "channel0" : "channel"
                                          : fmt::format("p{}", axis + 1 - leaf_.window.rank());
    const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
    numbers_.emplace_back(stride, stride_text(fused_, o, i));
    terms.push_back(fmt::format("{} * {}", place, stride));
    if (axis != 1) continue;
    channel = stride;
    if (by_ == By::place)
      requirements_.push_back(fmt::format("{} <= 1000000000", stride_text(fused_, o, i)));
  }
  if (by_ == By::place && !terms.empty()) {
    const std::string offset = code_.word("at_" + word);
    offsets_.emplace_back(offset, join(terms, " + "));
    if (channel.empty()) return fmt::format("{}[at.{}]", name(o), offset);
    return fmt::format("cutegen::conv_channel({}, at.{}, {}, {})", name(o), offset, channel_of,
                       channel);
  }
  return fmt::format("{}[{}]", name(o), terms.empty() ? "0" : join(terms, " + "));
}

}  // namespace cutegen::recipes
