// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/emit/emit.h"
#include "recipes/nest/windowed.h"

namespace cutegen::recipes {
namespace {

// Numbers that a kernel takes, with their plan expressions.
using Numbers = std::vector<std::pair<std::string, std::string>>;

constexpr int64_t kUnrolled = 32;  // positions of a pooling window that a kernel spells out

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

std::string constants(const Window& window) {
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    text += fmt::format("constexpr int kStride{0} = {1}, kPadding{0} = {2}, kDilation{0} = {3};\n",
                        i, padded(window.stride, i, 1), padded(window.padding, i, 0),
                        padded(window.dilation, i, 1));
    if (window.pools())
      text += fmt::format("constexpr int kKernel{} = {};\n", i, padded(window.kernel, i, 1));
  }
  text.pop_back();
  return text;
}

// Writes what only pooling has: how a window starts, collects and divides.
void pool_text(const Window& window, std::map<std::string, std::string>& t) {
  const bool average = window.kind == WindowKind::average;
  int64_t positions = 1;
  for (int64_t size : window.kernel) positions *= size;
  const bool small = positions <= kUnrolled;
  t["unroll"] = small ? "      CUTE_UNROLL" : "#pragma unroll 1";
  t["initial"] = average ? "0" : "-INFINITY";
  t["accumulate"] =
      average ? "window += value;" : "if (value > window || value != value) window = value;";
  if (!average)
    t["divide"] = "    (void)count;";
  else if (window.divisor != 0)
    t["divide"] = fmt::format("    window /= {}.0f;\n    (void)count;", window.divisor);
  else if (!window.include_pad)
    t["divide"] = "    window /= float(count);";
  else
    t["divide"] =
        "    // The padding counts, but not what a window has beyond it.\n"
        "    const int64_t whole = min(int64_t(kKernel0), in0 + kPadding0 - start0) *\n"
        "                          min(int64_t(kKernel1), in1 + kPadding1 - start1) *\n"
        "                          min(int64_t(kKernel2), in2 + kPadding2 - start2);\n"
        "    window /= float(whole);\n    (void)count;";
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
    const std::string groups = groups_text(fused_);
    const bool transposed = window_.kind == WindowKind::transposed;
    numbers_.emplace_back("groups", groups);
    numbers_.emplace_back("in_of_group", transposed ? size_text(fused_, w, 0) + "/(" + groups + ")"
                                                    : size_text(fused_, w, 1));
    numbers_.emplace_back("out_of_group", transposed
                                              ? size_text(fused_, w, 1)
                                              : size_text(fused_, w, 0) + "/(" + groups + ")");
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

// Writes what follows the window, element by element, and the tensors of the kernel.
class Tail {
 public:
  explicit Tail(const Fused& fused) : fused_(fused), leaf_(*fused.window), code_(fused) {
    for (const char* word : {"window", "n", "channel", "p0", "p1", "p2", "sums", "pixels"})
      (void)code_.word(word);
    for (const FusedOutput& output : fused.outputs) results_.push_back(output.inst);
    for (int inst : code_.needed(results_, [](const Inst&) { return true; }))
      if (inst != leaf_.inst && at(inst).kind == InstKind::leaf) leaves_.push_back(inst);
  }

  // The strides that finish() reads its operands by.
  const Numbers& numbers() const { return numbers_; }

  // Writes the device function for one element: from the window's result to the outputs.
  std::string compute() {
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

  std::string finish() {
    std::string loads, stores;
    std::vector<std::string> values{"window"};
    for (int inst : leaves_) {
      const std::string word = code_.word("r_" + name(operand(inst)));
      loads += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", value_type(at(inst)),
                           word, element(operand(inst), name(operand(inst))));
      values.push_back(word);
    }
    for (const auto& [word, expression] : fused_.sizes) values.push_back(word);
    for (const FusedOutput& output : fused_.outputs) {
      const std::string word = code_.word("r_" + name(output.operand));
      loads += fmt::format("{} {};\n", value_type(at(output.inst)), word);
      stores +=
          fmt::format("{} = cutegen::from_float<{}>({});\n",
                      element(output.operand, name(output.operand)), type_of(output.operand), word);
      values.push_back(word);
    }
    return loads + fmt::format("compute({});\n", join(values, ", ")) + stores;
  }

  // Declares every tensor once: the window's operands, other inputs, outputs.
  std::string declare(Json& args) const {
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

 private:
  const Inst& at(int inst) const { return fused_.insts[static_cast<size_t>(inst)]; }
  const Operand& operand(int inst) const {
    return fused_.inputs[static_cast<size_t>(at(inst).operand)];
  }
  const std::string& name(const Operand& o) const { return fused_.names.at(o.tensor); }

  // The element of an operand at the current place of the nest.
  std::string element(const Operand& o, const std::string& word) {
    std::vector<std::string> terms;
    for (size_t i = 0; i < o.axes.size(); ++i) {
      if (o.axes[i] < 0) continue;
      const auto axis = static_cast<size_t>(o.axes[i]);
      const std::string place = axis == 0   ? "n"
                                : axis == 1 ? "channel"
                                            : fmt::format("p{}", axis + 1 - leaf_.window.rank());
      const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
      numbers_.emplace_back(stride, stride_text(fused_, o, i));
      terms.push_back(place + " * " + stride);
    }
    return fmt::format("{}[{}]", name(o), terms.empty() ? "0" : join(terms, " + "));
  }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  Code code_;
  std::vector<int> results_, leaves_;
  Numbers numbers_;
};

class Writer {
 public:
  Writer(const Task& task, const Fused& fused, const Json& params, const Label& label)
      : task_(task),
        fused_(fused),
        params_(params),
        label_(label),
        leaf_(*fused.window),
        window_(leaf_.window) {}

  ProgramPart write() {
    ProgramPart part;
    Tail tail(fused_);
    part.file = label_("kernel") + ".cu";
    std::map<std::string, std::string> t;
    t["title"] = title(task_, fused_);
    t["name"] = label_("window");
    t["threads"] = params_.at("threads").dump();
    t["pixels"] = params_.at("pixels").dump();
    t["constants"] = constants(window_);
    t["compute"] = tail.compute();
    t["finish"] = indent(tail.finish(), window_.pools() ? 4 : 6);
    t["input"] = fused_.names.at(leaf_.input.tensor);
    t["input_type"] = type_of(leaf_.input);
    t["params"] = tail.declare(args_);
    Numbers numbers = tail.numbers();
    const Numbers geometry = Geometry(fused_).write();
    numbers.insert(numbers.end(), geometry.begin(), geometry.end());
    for (const auto& [word, expression] : numbers) {
      args_.push_back({{"i64", expression}});
      t["sizes"] += (t["sizes"].empty() ? "       int64_t " : ", int64_t ") + word;
    }
    t["sizes"] += size_declarations(fused_);
    add_sizes(args_, fused_);
    if (window_.pools())
      pool_text(window_, t);
    else
      convolution_text(t);
    part.source =
        fill(window_.pools() ? "kernels/windows/pooling.cu" : "kernels/windows/convolution.cu", t);
    plan(part);
    return part;
  }

 private:
  void convolution_text(std::map<std::string, std::string>& t) const {
    t["channels"] = params_.at("channels").dump();
    t["transposed"] = window_.kind == WindowKind::transposed ? "true" : "false";
    t["weight"] = fused_.names.at(leaf_.weight.tensor);
  }

  std::string extent(size_t axis) const { return "(" + fused_.axes[axis].extent + ")"; }

  void plan(ProgramPart& part) {
    const std::string n = label_("n"), image = label_("image");
    std::string pixels;
    for (size_t i = 2; i < fused_.axes.size(); ++i) pixels += "*" + extent(i);
    part.symbols[image] = pixels.substr(1);
    part.symbols[n] = extent(0) + (window_.pools() ? "*" + extent(1) : "") + "*" + image;
    const auto threads = params_.at("threads").get<int64_t>();
    const int64_t tile = threads * params_.at("pixels").get<int64_t>();
    std::string grid = fmt::format("ceil_div({},{})", n, tile);
    // Places inside an image are 32-bit numbers.
    part.requirements.push_back(image + " <= 2000000000");
    part.requirements.push_back(last_of_image(fused_) + " <= 2000000000");
    if (!window_.pools()) {
      const std::string weight =
          size_text(fused_, leaf_.weight, window_.kind == WindowKind::transposed ? 1 : 0);
      const std::string groups = groups_text(fused_);
      const bool transposed = window_.kind == WindowKind::transposed;
      grid += fmt::format("*({0})*ceil_div({1}/({2}),{3})", groups, weight,
                          transposed ? "1" : groups, params_.at("channels").get<int64_t>());
    }
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", n + " > 0"},
                          {"grid", {grid, 1, 1}},
                          {"block", {threads, 1, 1}},
                          {"args", args_}});
  }

  const Task& task_;
  const Fused& fused_;
  const Json& params_;
  const Label& label_;
  const WindowLeaf& leaf_;
  const Window& window_;
  Json args_ = Json::array();
};

}  // namespace

std::vector<RecipeParameter> window_parameters(const Fused& fused) {
  std::vector<RecipeParameter> list{{"pixels", "results of a thread along the image", {4, 2, 1}},
                                    {"threads", "threads of a CTA", {128, 256}}};
  if (fused.window->window.pools()) return list;
  std::vector<int64_t> channels{1};
  for (int64_t c : {4, 8, 16, 32})
    if (out_of_group(fused) > c / 2) channels.insert(channels.begin(), c);
  list.insert(list.begin(), {"channels", "output channels of a thread", channels});
  return list;
}

Json window_safe(const Fused& fused) {
  if (fused.window->window.pools()) return {{"pixels", 1}, {"threads", 256}};
  int64_t channels = 1;
  for (int64_t c : {4, 8, 16})
    if (out_of_group(fused) > c / 2) channels = c;
  return {{"channels", channels}, {"pixels", 2}, {"threads", 128}};
}

ProgramPart window_part(const Task& task, const Fused& fused, const Json& params,
                        const Label& label) {
  return Writer(task, fused, params, label).write();
}

}  // namespace cutegen::recipes
