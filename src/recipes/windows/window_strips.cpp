// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_strips.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kLargestKernel = 7;      // test shapes leave smaller kernels as they are
constexpr int64_t kMostInputs = 8;         // input channels of a group
constexpr int64_t kMostOfGroupFaster = 8;  // output channels of a group: above, tensor cores win
constexpr int64_t kMostOutputs = 4;        // output channels of a thread
constexpr int64_t kMostStripSums = 64;     // sums of a thread
constexpr int64_t kMostHeld = 112;         // registers of a thread for sums, weights and inputs
constexpr int64_t kFewHeld = 36;           // with fewer such registers, an SM holds more threads
constexpr int64_t kMostParts = 65535;      // CTAs along the grid's second and third axis
constexpr int64_t kLargeFilter = 25;       // with more taps, a thread loads fewer rows in advance
constexpr int64_t kEnoughThreads = kSms * 512;
constexpr int64_t kFewInstructions = 500;  // a thread that executes fewer computes more results
constexpr int64_t kMostChunk = 16;         // input channels whose weights are in shared memory

// The geometry of the kernel for the official shape.
class Strips {
 public:
  explicit Strips(const Fused& fused)
      : fused_(fused), leaf_(*fused.window), window_(leaf_.window) {}

  int64_t element() const { return int64_t(size_of(leaf_.input.dtype)); }
  int64_t kernel(size_t axis) const { return padded(window_.kernel, axis, 1); }
  int64_t inputs() const { return leaf_.weight.shape[1]; }
  // The output channels of a thread.
  int64_t channels() const {
    const int64_t all = out_of_group(fused_);
    for (int64_t count = kMostOutputs; count > 1; --count)
      if (all % count == 0) return count;
    return std::min(all, kMostOutputs);
  }
  // The number of results along an axis.
  int64_t results(size_t axis) const {
    const size_t skipped = 3 - window_.rank();
    return axis < skipped ? 1 : fused_.axes[axis - skipped + 2].size;
  }
  int64_t reach(size_t axis, int64_t count) const {
    return (count - 1) * padded(window_.stride, axis, 1) +
           (kernel(axis) - 1) * padded(window_.dilation, axis, 1) + 1;
  }
  // Elements that the kernel loads at once.
  int64_t vector(int64_t strip) const {
    int64_t count = 16 / element();
    while (count > 1 && (leaf_.input.shape.back() % count || strip * window_.stride.back() % count))
      count /= 2;
    return count;
  }
  int64_t vectors(int64_t strip) const {
    const int64_t v = vector(strip), padding = window_.padding.back();
    return ceil_div(((-padding) % v + v) % v + reach(2, strip), v);
  }
  // Registers for sums, weights and inputs.
  int64_t registers(int64_t strip, int64_t rows) const {
    const int64_t ahead = kernel(1) * kernel(2) < kLargeFilter ? 3 : 2,
                  words = std::max<int64_t>(1, bytes(strip) / 4),
                  held = std::min(reach(1, rows), ahead) * vectors(strip) * words;
    return channels() * rows * strip + channels() * kernel(1) * kernel(2) + held + reach(2, strip);
  }
  // An estimate of the instructions of a thread.
  int64_t instructions(int64_t strip, int64_t rows) const {
    const int64_t taps = channels() * kernel(1) * kernel(2),
                  row = vectors(strip) * (4 + bytes(strip) / 8) + 8 +
                        (element() < 4 ? reach(2, strip) : 0),
                  plane = reach(1, rows) * row + taps * strip * rows + taps / 4;
    const int64_t result = results(2) % strip == 0 ? 8 : 12;  // single stores take longer
    return inputs() * kernel(0) * plane + channels() * rows * (result * strip + 12) + 60;
  }
  // The threads that compute one channel, or one tile of channels.
  int64_t work(int64_t strip, int64_t rows) const {
    return fused_.axes[0].size * results(0) * ceil_div(results(1), rows) *
           ceil_div(results(2), strip);
  }
  int64_t tiles() const { return window_.groups * ceil_div(out_of_group(fused_), channels()); }
  int64_t rank() const { return int64_t(window_.rank()); }

 private:
  int64_t bytes(int64_t strip) const { return vector(strip) * element(); }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  const Window& window_;
};

bool fits(const Strips& strips, int64_t strip, int64_t rows) {
  return (rows == 1 || strips.rank() > 1) && strip * strips.element() <= 16 &&
         strips.channels() * strip * rows <= kMostStripSums &&
         strips.registers(strip, rows) <= kMostHeld;
}

// The largest CTA that leaves at most an eighth of its threads idle.
int64_t threads_for(int64_t work) {
  for (int64_t threads : {128, 64})
    if (ceil_div(work, threads) * threads * 8 <= 9 * work) return threads;
  return 32;
}

// Returns a sum of remainders, as a plan expression, that is 0 if `o` has aligned runs of `count`
// elements along axis `last`.
std::string remainders(const Fused& fused, const Operand& o, size_t last, int64_t count) {
  std::string rest = fmt::format("({})%{}", start_text(fused, o), count);
  if (const std::string step = stride_text(fused, o, last); step != "1")
    rest += fmt::format("+(({}) == 1 ? 0 : 1)", step);
  for (size_t i = 0; i < o.axes.size(); ++i)
    if (i != last) rest += fmt::format("+({})%{}", stride_text(fused, o, i), count);
  return rest;
}

// The elements of a load: `vector` if rows of the input consist of whole aligned vectors.
std::string vector_rule(const Fused& fused, int64_t vector) {
  const Operand& in = fused.window->input;
  const size_t last = fused.window->window.rank() + 1;
  if (vector == 1) return "1";
  return fmt::format("({})%{}+{} == 0 ? {} : 1", size_text(fused, in, last), vector,
                     remainders(fused, in, last, vector), vector);
}

// Whether rows of all results consist of whole aligned strips.
std::string whole_rule(const Fused& fused, int64_t strip) {
  const int last = int(fused.window->window.rank()) + 1;
  std::string rest = fmt::format("({})%{}", fused.axes[size_t(last)].extent, strip);
  for (const FusedOutput& output : fused.outputs) {
    const std::vector<int>& axes = output.operand.axes;
    const auto found = std::find(axes.begin(), axes.end(), last);
    if (found == axes.end()) return "0";
    rest += "+" + remainders(fused, output.operand, size_t(found - axes.begin()), strip);
  }
  return rest + " == 0 ? 1 : 0";
}

// Writes the kernel and the plan of one stage.
class StripsWriter {
 public:
  StripsWriter(const Task& task, const Fused& fused, const Json& params, const Label& label)
      : task_(task), fused_(fused), params_(params), label_(label), strips_(fused) {}

  ProgramPart write() {
    ProgramPart part;
    part.file = label_("kernel") + ".cu";
    part.source = fill("kernels/windows/strips.cu", text());
    const int64_t strip = int_param(params_, "strip");
    set_vectors(part, fused_, label_, strips_.vector(strip), strip);
    part.symbols[label_("inputs")] =
        fmt::format("({0}) == {1} ? {1} : 0", in_of_group_text(fused_), strips_.inputs());
    part.defines[label_("INPUTS")] = label_("inputs");
    plan(part);
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    return part;
  }

 private:
  std::map<std::string, std::string> text() {
    std::map<std::string, std::string> t =
        strips_text(task_, fused_, label_, {.each = strips_.channels() > 1}, args_);
    t["threads"] = params_.at("strip_threads").dump();
    t["axes"] = std::to_string(strips_.rank());
    t["channels"] = std::to_string(strips_.channels());
    t["rows"] = params_.at("strip_rows").dump();
    t["strip"] = params_.at("strip").dump();
    t["rounds"] = params_.at("strip_rounds").dump();
    t["inputs"] = label_("INPUTS");
    t["resident"] =
        strips_.registers(int_param(params_, "strip"), int_param(params_, "strip_rows")) <= kFewHeld
            ? "1024"
            : "512";
    t["lines"] = lines() ? "true" : "false";
    t["chunk"] = std::to_string(std::min(strips_.inputs(), kMostChunk));
    return t;
  }

  // Whether each CTA computes results of one line: if lines have only one axis and are long enough.
  bool lines() const {
    const int64_t across = ceil_div(strips_.results(2), int_param(params_, "strip"));
    return strips_.rank() == 1 && ceil_div(across, turn()) * turn() * 8 <= 9 * across;
  }
  // The strips of a CTA.
  int64_t turn() const {
    return int_param(params_, "strip_threads") * int_param(params_, "strip_rounds");
  }

  std::string extent(size_t axis) const { return "(" + fused_.axes[axis].extent + ")"; }

  void plan(ProgramPart& part) const {
    const size_t rank = fused_.window->window.rank();
    const std::string n = label_("n"), image = label_("image"), work = label_("strips");
    std::string pixels, strips = extent(0);
    for (size_t i = 2; i < fused_.axes.size(); ++i) pixels += "*" + extent(i);
    if (rank == 3) strips += "*" + extent(2);
    if (rank > 1)
      strips += fmt::format("*ceil_div({},{})", extent(rank), int_param(params_, "strip_rows"));
    strips += fmt::format("*ceil_div({},{})", extent(rank + 1), int_param(params_, "strip"));
    part.symbols[image] = pixels.substr(1);
    part.symbols[n] = extent(0) + "*" + image;
    part.symbols[work] = strips;
    // Places inside an image, and the threads of a channel, are 32-bit numbers.
    for (const std::string& most : {image, work, last_of_image(fused_)})
      part.requirements.push_back(most + " <= 2000000000");
    require_filter(part, fused_);
    const std::string parts =
        lines() ? fmt::format("ceil_div({},{})", extent(2), turn() * int_param(params_, "strip"))
                : fmt::format("ceil_div({},{})", work, turn());
    const std::string images = lines() ? extent(0) : "1";
    part.requirements.push_back(fmt::format("{} <= {}", parts, kMostParts));
    if (lines()) part.requirements.push_back(fmt::format("{} <= {}", images, kMostParts));
    const std::string tiles = fmt::format("({})*ceil_div({},{})", groups_text(fused_),
                                          out_of_group_text(fused_), strips_.channels());
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", n + " > 0"},
                          {"grid", {tiles, parts, images}},
                          {"block", {int_param(params_, "strip_threads"), 1, 1}},
                          {"args", args_}});
  }

  const Task& task_;
  const Fused& fused_;
  const Json& params_;
  const Label& label_;
  const Strips strips_;
  Json args_ = Json::array();
};

}  // namespace

std::map<std::string, std::string> strips_text(const Task& task, const Fused& fused,
                                               const Label& label, const StripsStyle& style,
                                               Json& args) {
  const WindowLeaf& leaf = *fused.window;
  Tail tail(fused, Tail::By::strip);
  std::map<std::string, std::string> t;
  t["title"] = title(task, fused);
  t["name"] = label("window");
  t["macro"] = label("VECTOR");
  t["whole"] = label("WHOLE");
  t["constants"] = constants(leaf.window, true);
  const std::string channel = "const int64_t channel = group * out_of_group + first";
  t["once"] = style.each ? "" : indent(channel + ";\n" + tail.of_channel(), 2);
  t["each"] = style.each ? indent(channel + " + m;\n" + tail.of_channel(), style.depth - 4) : "";
  t["compute"] = tail.compute();
  t["finish"] = indent(tail.finish(), style.depth);
  t["strips"] = indent(tail.results(), style.depth - 2);
  t["stores"] = indent(tail.stores(), style.depth - 2);
  t["input"] = fused.names.at(leaf.input.tensor);
  t["input_type"] = type_of(leaf.input);
  t["weight"] = fused.names.at(leaf.weight.tensor);
  t["params"] = tail.declare(args);
  Numbers numbers = tail.numbers();
  const Numbers more = geometry(fused);
  numbers.insert(numbers.end(), more.begin(), more.end());
  t["sizes"] = add_numbers(args, numbers) + size_declarations(fused);
  add_sizes(args, fused);
  return t;
}

void set_vectors(ProgramPart& part, const Fused& fused, const Label& label, int64_t vector,
                 int64_t strip) {
  part.symbols[label("vector")] = vector_rule(fused, vector);
  part.symbols[label("whole")] = whole_rule(fused, strip);
  part.defines[label("VECTOR")] = label("vector");
  part.defines[label("WHOLE")] = label("whole");
}

void require_filter(ProgramPart& part, const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  for (size_t i = 0; i < leaf.window.rank(); ++i)
    part.requirements.push_back(
        fmt::format("{} == {}", size_text(fused, leaf.weight, i + 2), leaf.window.kernel[i]));
}

bool strips_apply(const Fused& fused) {
  if (!fused.window || fused.reduces()) return false;
  const WindowLeaf& leaf = *fused.window;
  const Window& w = leaf.window;
  if (w.kind != WindowKind::convolution) return false;
  const int64_t inputs = leaf.weight.shape[1];
  return inputs <= kMostInputs && (inputs == 1 || w.groups > 1) &&
         std::all_of(w.kernel.begin(), w.kernel.end(),
                     [](int64_t k) { return k <= kLargestKernel; });
}

bool strips_legal(const Fused& fused, const Json& params) {
  return strips_apply(fused) &&
         fits(Strips(fused), int_param(params, "strip"), int_param(params, "strip_rows"));
}

Json strips_safe(const Fused& fused) {
  const Strips strips(fused);
  Json none{{"strip", 0}, {"strip_rows", 1}, {"strip_rounds", 1}, {"strip_threads", 128}};
  int64_t best = 0, strip = 0, rows = 1;
  for (int64_t wide : {8, 4, 2})
    for (int64_t tall : {1, 2, 3, 4, 5, 6, 7, 8}) {
      if (!fits(strips, wide, tall) || strips.vector(wide) < 2) continue;
      if (tall > 1 && tall >= 2 * strips.results(1)) continue;
      const int64_t count = std::max(strips.work(wide, tall) * strips.tiles(), kEnoughThreads);
      const int64_t cost = count * strips.instructions(wide, tall);
      if (best == 0 || cost < best) best = cost, strip = wide, rows = tall;
    }
  const bool large = strips.inputs() > 1 && out_of_group(fused) > kMostOfGroupFaster;
  if (strip == 0 || large || ceil_div(strips.work(strip, rows), 32) > kMostParts) return none;
  // Rows of results that do not consist of whole strips need single stores. On an H200, task 82 of
  // KernelBench's level 1 (rows of 510) then takes 1.13 ms, with tiles in shared memory 0.80 ms.
  if (strips.inputs() == 1 && strips.rank() > 1 && strips.results(2) % strip != 0) return none;
  const int64_t work = strips.work(strip, rows),
                line = strips.rank() == 1 ? ceil_div(strips.results(2), strip) : work;
  int64_t rounds = 1;
  while (rounds < 4 && rounds * strips.instructions(strip, rows) < kFewInstructions &&
         work * strips.tiles() >= 8 * rounds * kEnoughThreads)
    rounds *= 2;
  return {{"strip", strip},
          {"strip_rows", rows},
          {"strip_rounds", rounds},
          {"strip_threads", threads_for(ceil_div(line, rounds))}};
}

std::vector<RecipeParameter> strips_parameters(const Fused& fused) {
  const Json safe = strips_safe(fused);
  std::vector<int64_t> wide{int_param(safe, "strip")};
  for (int64_t other : {8, 4, 2, 0})
    if (other != wide[0] && other * int64_t(size_of(fused.window->input.dtype)) <= 16)
      wide.push_back(other);
  return {{.name = "strip",
           .meaning = "neighbouring results of a thread; 0: another kernel",
           .legal = wide},
          {.name = "strip_rows",
           .meaning = "with strip above 0, strips of a thread, below one another",
           .legal = {4, 7, 8, 2, 1}},
          {.name = "strip_rounds",
           .meaning = "with strip above 0, results of a thread, one after the other",
           .legal = {1, 2, 4}},
          {.name = "strip_threads",
           .meaning = "with strip above 0, threads of a CTA",
           .legal = {128, 64, 256}}};
}

ProgramPart strips_part(const Task& task, const Fused& fused, const Json& params,
                        const Label& label) {
  return StripsWriter(task, fused, params, label).write();
}

}  // namespace cutegen::recipes
