// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_implicit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "base/text.h"
#include "recipes/fuse/extents.h"
#include "recipes/graph/reshape.h"
#include "recipes/nest/channel_values.h"
#include "recipes/nest/windowed.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kConsumers = 2, kProducers = 96, kThreads = 384;
constexpr int64_t kMostSharedImplicit = int64_t{227} << 10;
// Shared memory of a CTA if an SM holds two.
constexpr int64_t kMostOfTwoImplicit = int64_t{113} << 10;
// Results that a thread keeps in registers.
constexpr int64_t kMostResults = 128;
constexpr int64_t kMostCells = 16000;      // cells of a patch: wgmma counts them in 14 bits
constexpr int64_t kMostPlaces = 2048;      // filter taps, in all planes of a stage
constexpr int64_t kMostPhases = 8;         // phases along the last axis
constexpr int64_t kMostOfWriting = 300;    // products per result; below, writing takes longer
constexpr int64_t kMostStages = 16;        // stages of weights, if they stay in shared memory
constexpr int64_t kMostStaged = 4608;      // floats that a consumer stages at a time
constexpr int64_t kWeightBytes = 8 << 10;  // bytes of a stage of weights, for each term

// The geometry of conv_layout.cuh, for the official shape.
class Layout {
 public:
  Layout(const Fused& fused, const Json& params)
      : fused_(fused),
        window_(fused.window->window),
        width_(16 / int64_t(size_of(fused.window->input.dtype))),
        terms_(fused.window->wgmma == 3 ? 2 : 1),
        rows_(int64_t(row_reductions(fused).size())),
        channels_(int64_t(channel_values(fused).size())),
        along_(int_param(params, "along") != 0),
        tile_{int_param(params, "deep"), int_param(params, "tall"), int_param(params, "wide")},
        params_(params) {}

  int64_t width() const { return width_; }  // elements per cell
  int64_t terms() const { return terms_; }  // terms per number
  int64_t rows() const { return rows_; }  // values per position, from reductions over the channels
  int64_t channels() const { return channels_; }
  int64_t tile(size_t axis) const { return tile_[axis]; }
  int64_t stride(size_t axis) const { return padded(window_.stride, axis, 1); }
  int64_t padding(size_t axis) const { return padded(window_.padding, axis, 0); }
  bool transposed() const { return window_.kind == WindowKind::transposed; }
  int64_t phases(size_t axis) const { return transposed() ? stride(axis) : 1; }
  int64_t kernel(size_t axis) const {
    const int64_t all = padded(window_.kernel, axis, 1);
    return axis == 2 && along_ ? ceil_div(all, width_) : all;
  }
  int64_t places() const {
    return int_param(params_, "planes") * kernel(0) * kernel(1) * kernel(2);
  }
  int64_t cells() const {
    int64_t count = 1;
    for (size_t i = 0; i < 3; ++i) count *= classes(i) * (tile_[i] + reach(i));
    return count;
  }
  // The most bytes that copies ahead take: shapes decide whether producers copy runs or single
  // elements.
  int64_t raw() const {
    const int64_t stages = int_param(params_, "raw"), planes = int_param(params_, "planes");
    if (stages == 0) return 0;
    const int64_t single = width_ == 4 ? planes * ceil_div(cells(), kProducers) * kProducers : 0;
    if (!runs()) return 16 * stages * single;
    const int64_t skew = (front(2) % 4 + 4) % 4, size = tile_[2] + reach(2);
    const int64_t lines = classes(0) * classes(1) * (tile_[0] + reach(0)) * (tile_[1] + reach(1));
    const int64_t rounds = ceil_div(planes * lines * ((skew + size + 3) / 4), kProducers);
    return 16 * stages * std::max(4 * rounds * kProducers, single);
  }
  // Whether rows of patches may consist of aligned runs of four.
  bool runs() const { return !along_ && tile_[2] % 4 == 0 && (transposed() || stride(2) == 1); }
  // Whether producers may copy ahead: at least four bytes at a time.
  bool may_copy() const { return width_ == 4 || runs(); }
  int64_t depth() const {  // channels of a stage
    return int_param(params_, "planes") * (along_ ? 1 : width_);
  }
  int64_t across() const { return tile_[2] % 64 == 0 ? 64 : 8; }
  int64_t blocks() const { return tile_[0] * tile_[1] * tile_[2] / 64; }
  // Whether each consumer gets whole blocks, in whole rows.
  bool divides() const {
    if (tile_[2] % 8 || tile_[1] % (64 / across()) || blocks() % kConsumers) return false;
    const int64_t mine = blocks() / kConsumers, line = tile_[2] / across();
    return mine % line == 0 || line % mine == 0;
  }
  // Sums that a thread holds; with two terms per number also partial sums.
  int64_t results() const {
    return blocks() / kConsumers * (phases(2) + terms_ - 1) * int_param(params_, "tile_n") / 2;
  }
  int64_t shared() const {
    const int64_t tile_n = int_param(params_, "tile_n"), patches = int_param(params_, "patches"),
                  stages = int_param(params_, "stages");
    const int64_t rounded = ceil_div(cells(), kProducers) * kProducers;
    const int64_t line = blocks() / kConsumers * 64 * phases(2);
    const int64_t bytes = 16 * terms_ * patches * int_param(params_, "planes") * cells() +
                          terms_ * stages * group() * 32 * tile_n + kConsumers * kept(line) * 4 +
                          raw() + 4 * rounded + (along_ ? rounded : 4) + 16 * (patches + stages) +
                          64;
    return ceil_div(bytes, 128) * 128;
  }
  // Floats that a slice of `channels` channels takes.
  int64_t staged(int64_t channels) const {
    return channels * (blocks() / kConsumers * 64 * phases(2) + 4);
  }
  // Floats of a consumer in shared memory: staged results, values of rows and of channels.
  int64_t kept(int64_t line) const {
    const int64_t pitch = channels_ <= 2 ? channels_ : ceil_div(channels_, 4) * 4;
    return std::max<int64_t>(1, int_param(params_, "slice") * (line + 4) + rows_ * line +
                                    int_param(params_, "tile_n") * pitch);
  }
  // Stages of weights if all tiles share their weights; otherwise 0.
  int64_t shared_weights() const {
    const int64_t channels = fused_.window->input.shape[1] / window_.groups,
                  tiles = ceil_div(out_of_group(fused_), int_param(params_, "tile_n"));
    if (window_.groups * tiles * phases(0) * phases(1) > 1) return 0;
    return ceil_div(channels, depth()) * padded_steps(group()) / group();
  }
  // Steps of a stage of weights. Padding steps multiply by zero, which gives NaN for an infinite
  // input. So only kernels that repair such sums have them: with `along`, and with two terms.
  int64_t group() const {
    const int64_t most =
        std::clamp<int64_t>(kWeightBytes / (32 * int_param(params_, "tile_n")), 1, 8);
    int64_t best = 1;
    for (int64_t group = 2; group <= most; ++group)
      if (padded_steps(group) <= padded_steps(along_ || terms_ == 2 ? best : 1)) best = group;
    return best;
  }

 private:
  int64_t dilation(size_t axis) const {
    return padded(window_.dilation, axis, 1) * (axis == 2 && along_ ? width_ : 1);
  }
  // Filter taps along an axis that belong to a phase.
  int64_t places_of(size_t axis, int64_t phase) const {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel(axis); ++k)
      count += !transposed() || (phase + padding(axis) - k * dilation(axis)) % stride(axis) == 0;
    return count;
  }
  // Steps of all phases, each padded to a multiple of `group`.
  int64_t padded_steps(int64_t group) const {
    int64_t sum = 0;
    for (int64_t f0 = 0; f0 < phases(0); ++f0)
      for (int64_t f1 = 0; f1 < phases(1); ++f1)
        for (int64_t f2 = 0; f2 < phases(2); ++f2) {
          const int64_t cells =
              int_param(params_, "planes") * places_of(0, f0) * places_of(1, f1) * places_of(2, f2);
          sum += ceil_div(cells, 2 * group) * group;
        }
    return sum;
  }
  int64_t front(size_t axis) const {
    if (!transposed()) return -padding(axis);
    const int64_t behind = (kernel(axis) - 1) * dilation(axis) - padding(axis), s = stride(axis);
    return behind >= 0 ? -(behind / s) : (s - 1 - behind) / s;
  }
  int64_t reach(size_t axis) const {
    const int64_t s = stride(axis);
    if (!transposed()) return (kernel(axis) - 1) * dilation(axis) / s;
    return ceil_div(padding(axis), s) - front(axis);
  }
  int64_t classes(size_t axis) const {
    return transposed()
               ? 1
               : std::min(kernel(axis), stride(axis) / std::gcd(stride(axis), dilation(axis)));
  }

  const Fused& fused_;
  const Window& window_;
  int64_t width_, terms_, rows_, channels_;
  bool along_;
  int64_t tile_[3];
  const Json& params_;
};

// About how many results of a phase lie along one of the three axes.
int64_t results_along(const Fused& fused, size_t axis) {
  const Window& window = fused.window->window;
  const size_t skipped = 3 - window.rank();
  if (axis < skipped) return 1;
  const int64_t out = fused.axes[axis - skipped + 2].size;
  return window.kind == WindowKind::transposed ? ceil_div(out, window.stride[axis - skipped]) : out;
}

int64_t channels_in(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  return leaf.input.shape[1] / leaf.window.groups;
}

// Whether cells may hold filter taps: few channels would leave cells half empty.
bool may_go_along(const Fused& fused) {
  const Window& window = fused.window->window;
  return window.kind == WindowKind::convolution && window.kernel.back() > 1;
}

// Planes of a stage: an even number, with few empty ones.
int64_t planes_of(const Fused& fused, bool along) {
  if (along) return channels_in(fused);
  const int64_t width = 16 / int64_t(size_of(fused.window->input.dtype));
  return ceil_div(channels_in(fused), width) <= 2 ? 2 : 4;
}

// Whether tiles should have rows of 64 results rather than blocks of 8 x 8.
bool likes_lines(const Fused& fused) {
  const int64_t x = results_along(fused, 2), y = results_along(fused, 1);
  return y < 4 || x % 64 == 0 || x % 64 > 40 || x > 320;
}

// Whether writing the results limits the speed: few multiplications per result, no reductions.
bool bound_by_writing(const Fused& fused) {
  const Window& window = fused.window->window;
  int64_t depth = channels_in(fused) * product(window.kernel);
  if (window.kind == WindowKind::transposed) depth /= product(window.stride);
  return depth <= kMostOfWriting && !fused.reduces();
}

// Whether results should pass through shared memory. Stores of registers take fewer instructions,
// which pays if the work after the convolution takes many. On an H200, GELU after a transposed
// convolution (task 93 of KernelBench's level 2) takes 1.23 ms with stores of registers and 1.39 ms
// through shared memory, Mish (task 4) 2.38 and 2.69 ms. But a plain convolution takes 1.5 times as
// long (level 1, task 63: 7.9 and 5.2 ms), and so does GELU after few multiplications (level 2,
// task 67). Stores of registers also need full sectors of 32 bytes: eight neighbours of 32 bits, or
// phases in pairs. So do reads of residuals.
bool stages_results(const Fused& fused) {
  const Window& window = fused.window->window;
  const bool transposed = window.kind == WindowKind::transposed;
  if (!computes_functions(fused) || (!transposed && bound_by_writing(fused))) return true;
  if (transposed && window.stride.back() > 1 &&
      (window.stride.back() != 2 || fused.axes.back().size % 2 != 0))
    return true;
  const bool narrow =
      std::any_of(fused.outputs.begin(), fused.outputs.end(),
                  [](const FusedOutput& output) { return size_of(output.operand.dtype) < 4; });
  return narrow || std::any_of(fused.insts.begin(), fused.insts.end(), [&](const Inst& inst) {
           return inst.kind == InstKind::leaf &&
                  &inst != &fused.insts[size_t(fused.window->inst)] &&
                  differs(fused.inputs[size_t(inst.operand)]);
         });
}

// Tiles of `blocks` blocks of 64 results: rows of 64, or blocks of 8 x 8.
void shape_tile(const Fused& fused, int64_t blocks, bool wide, Json& params) {
  const int64_t x = results_along(fused, 2), y = results_along(fused, 1),
                z = results_along(fused, 0);
  const int64_t deep = z >= 2 && blocks >= 4 ? 2 : 1;
  blocks /= deep;
  params["deep"] = deep;
  if (wide) {
    // Longer rows are written faster but need larger patches. They are chosen only if they leave no
    // more of the tiles empty.
    const bool pairs =
        blocks >= 4 && bound_by_writing(fused) && ceil_div(x, 128) * 2 <= ceil_div(x, 64);
    const int64_t tall = y == 1 ? 1 : pairs ? blocks / 2 : blocks;
    params["wide"] = 64 * blocks / tall, params["tall"] = tall;
  } else {
    const int64_t across = blocks >= 2 && x > 8 ? 2 : 1;
    params["wide"] = 8 * across, params["tall"] = 8 * blocks / across;
  }
}

// The texts for kernels that do nothing unless a flag is set.
void put_guard(std::map<std::string, std::string>& t, bool guarded) {
  t["include"] = t["flags"] = t["allow"] = t["guard"] = "";
  if (!guarded) return;
  t["include"] = "#include <cutegen/steps.cuh>\n";
  t["flags"] = " const int* __restrict__ flags, int64_t flag_count,";
  t["allow"] = "  cutegen::allow_next_step();\n";
  t["guard"] =
      "  cutegen::await_previous_step();\n"
      "  // Without a flag, the kernel before has computed the results.\n"
      "  if (!cutegen::any_flag(flags, flag_count)) return;\n";
}

class ImplicitWriter {
 public:
  ImplicitWriter(const Task& task, const Fused& fused, const Json& params, const Label& label,
                 const StepFlags* flags)
      : task_(task),
        fused_(fused),
        params_(params),
        label_(label),
        leaf_(*fused.window),
        layout_(fused, params),
        flags_(flags) {}

  ProgramPart write() {
    ProgramPart part;
    part.hopper = true;
    part.file = label_("kernel") + ".cu";
    Tail tail(fused_, Tail::By::place);
    auto t = names();
    t["compute"] = tail.compute();
    t["channels"] = indent(tail.channels("int(group * tiles_n) + tile.channels"), 4);
    t["passes"] = indent(tail.passes("storage"), 4);
    t["write"] = indent(write_text(tail, "storage", may_pair()), 4);
    t["together"] = std::to_string(tail.together());
    for (const auto& [word, value] : tail.offsets()) {
      t["offsets"] += ", " + word;
      t["places"] += ",\n                   " + value;
    }
    t["offsets"].erase(0, 2);
    for (const auto& [word, value] : tail.constants()) {
      const std::string define = label_("STRIDE_" + word);
      t["constants"] += fmt::format("constexpr int64_t {} = {};\n", word, define);
      part.defines[define] = value;
    }
    t["constants"] = indent(t["constants"], 4);
    for (const std::string& demand : tail.requirements()) part.requirements.push_back(demand);
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    Json args = Json::array();
    t["params"] = tail.declare(args);
    args.push_back({{"tensor", label_("packed")}});
    add_flags(args);
    Numbers numbers = tail.numbers();
    for (const Numbers& more : {geometry(fused_), tile_numbers()})
      numbers.insert(numbers.end(), more.begin(), more.end());
    t["sizes"] = add_numbers(args, numbers) + size_declarations(fused_);
    add_sizes(args, fused_);
    part.source = fill("kernels/windows/implicit.cu", t);
    plan(part, args);
    return part;
  }

 private:
  std::map<std::string, std::string> names() const {
    std::map<std::string, std::string> t;
    t["title"] = title(task_, fused_);
    t["name"] = label_("window"), t["pack"] = label_("pack"), t["steps"] = label_("kSteps");
    put_guard(t, flags_ != nullptr);
    t["geometry"] = label_("Geometry"), t["engine"] = label_("Engine");
    t["suffix"] = label_.number.empty() ? "" : "_" + label_.number;
    t["input"] = fused_.names.at(leaf_.input.tensor);
    t["input_type"] = type_of(leaf_.input);
    t["weight"] = fused_.names.at(leaf_.weight.tensor);
    t["weight_type"] = type_of(leaf_.weight);
    t["element"] = leaf_.input.dtype == DType::f32 ? "float" : type_of(leaf_.input);
    t["transposed"] = layout_.transposed() ? "true" : "false";
    t["along"] = int_param(params_, "along") ? "true" : "false";
    for (const char* name : {"planes", "tile_n", "patches", "stages", "slice", "resident", "raw"})
      t[name] = params_.at(name).dump();
    t["channel_values"] = std::to_string(layout_.channels());
    t["row_values"] = std::to_string(layout_.rows());
    t["products"] = std::to_string(leaf_.wgmma);
    t["group"] = std::to_string(layout_.group());
    t["shared"] = std::to_string(layout_.shared());
    t["pairs"] = may_pair() ? "PAIRS" + t["suffix"] + " == 0" : "false";
    t["dilation0"] = std::to_string(padded(leaf_.window.dilation, 0, 1));
    t["dilation1"] = std::to_string(padded(leaf_.window.dilation, 1, 1));
    t["dilation2"] = std::to_string(padded(leaf_.window.dilation, 2, 1));
    for (size_t i = 0; i < 3; ++i) {
      const std::string axis = std::to_string(i);
      t["tile" + axis] = std::to_string(layout_.tile(i));
      t["stride" + axis] = std::to_string(layout_.stride(i));
      t["padding" + axis] = std::to_string(layout_.padding(i));
    }
    return t;
  }

  void add_flags(Json& args) const {
    if (!flags_) return;
    args.push_back({{"tensor", flags_->tensor}});
    args.push_back({{"i64", flags_->count}});
  }

  // The size of an axis of the kernel, as a plan expression.
  std::string kernel(size_t axis) const {
    const size_t skipped = 3 - leaf_.window.rank();
    return axis < skipped ? "1" : size_text(fused_, leaf_.weight, axis - skipped + 2);
  }

  std::string tiles(size_t axis) const {
    const size_t skipped = 3 - leaf_.window.rank();
    if (axis < skipped) return "1";
    const std::string out = "(" + fused_.axes[axis - skipped + 2].extent + ")";
    const int64_t steps = layout_.transposed() ? layout_.stride(axis) : 1;
    return fmt::format("ceil_div({},{})", out, steps * layout_.tile(axis));
  }

  Numbers tile_numbers() const {
    return {{"tiles0", label_("tiles0")},
            {"tiles1", label_("tiles1")},
            {"tiles2", label_("tiles2")},
            {"all_tiles", label_("all_tiles")}};
  }

  // 0 if runs of four neighbours are aligned in the input, as a plan expression.
  std::string misaligned() const {
    const Operand& in = leaf_.input;
    const size_t last = leaf_.window.rank() + 1;
    std::string sum = fmt::format("max({0},1)-min({0},1)+({1})%4", stride_text(fused_, in, last),
                                  size_text(fused_, in, last));
    for (size_t i = 0; i < last; ++i) sum += fmt::format("+({})%4", stride_text(fused_, in, i));
    return sum;
  }

  // Whether threads hold pairs of neighbouring results and may store them at once.
  bool may_pair() const {
    return int_param(params_, "slice") == 0 && layout_.phases(2) % 2 == 0 && along_last(fused_);
  }

  void plan(ProgramPart& part, const Json& args) const {
    const std::string in = in_of_group_text(fused_), out = out_of_group_text(fused_),
                      groups = groups_text(fused_), batches = size_text(fused_, leaf_.input, 0);
    std::string image;
    for (size_t i = 2; i < fused_.axes.size(); ++i) image += "*(" + fused_.axes[i].extent + ")";
    part.symbols[label_("image")] = image.substr(1);
    for (size_t i = 0; i < 3; ++i) {
      part.symbols[label_("tiles" + std::to_string(i))] = tiles(i);
      part.defines[label_("KERNEL" + std::to_string(i))] = kernel(i);
      part.requirements.push_back(
          fmt::format("{} <= {}", kernel(i), padded(leaf_.window.kernel, i, 1)));
    }
    part.defines[label_("MISALIGNED")] = misaligned();
    if (may_pair()) part.defines[label_("PAIRS")] = misaligned_pairs(fused_);
    const int64_t tile_n = int_param(params_, "tile_n");
    // Reductions over the channels need all of them in one tile.
    if (fused_.reduces()) part.requirements.push_back(fmt::format("{} <= {}", out, tile_n));
    part.symbols[label_("all_tiles")] = fmt::format(
        "{}*{}*{}*{}*({})*ceil_div({},{})*({})", label_("tiles0"), label_("tiles1"),
        label_("tiles2"), layout_.phases(0) * layout_.phases(1), groups, out, tile_n, batches);
    const int64_t phases = layout_.phases(0) * layout_.phases(1) * layout_.phases(2);
    const std::string across = int_param(params_, "along")
                                   ? fmt::format("ceil_div({},{})", kernel(2), layout_.width())
                                   : kernel(2);
    part.symbols[label_("packed_size")] = fmt::format(
        "({})*ceil_div({},{})*ceil_div({},{})*(({}*({})*({})*({})+{})/2)*{}", groups, out, tile_n,
        in, layout_.depth(), int_param(params_, "planes"), kernel(0), kernel(1), across,
        phases * (2 * layout_.group() - 1), 8 * tile_n * layout_.terms());
    part.scratch.push_back({{"name", label_("packed")},
                            {"dtype", "f32"},
                            {"shape", Json::array({label_("packed_size")})}});
    // Offsets inside an image have 32 bits.
    for (const std::string& size : {label_("image"), last_of_image(fused_), label_("all_tiles")})
      part.requirements.push_back(size + " <= 2000000000");
    Json pack = Json::array(
        {{{"tensor", fused_.names.at(leaf_.weight.tensor)}}, {{"tensor", label_("packed")}}});
    add_flags(pack);
    const std::set<std::string> packs{"groups", "in_of_group", "out_of_group"};
    for (const auto& [word, expression] : geometry(fused_))
      if (packs.count(word) || word.rfind("weight", 0) == 0) pack.push_back({{"i64", expression}});
    const std::string when = label_("all_tiles") + " > 0";
    part.steps.push_back(
        {{"id", label_("pack")},
         {"kernel", label_("pack")},
         {"when", when},
         {"grid",
          {fmt::format("min(ceil_div({},1024),{})", label_("packed_size"), 8 * kSms), 1, 1}},
         {"block", {256, 1, 1}},
         {"args", pack}});
    part.steps.push_back(
        {{"id", label_("window")},
         {"kernel", label_("window")},
         {"when", when},
         {"grid",
          {fmt::format("min({},{})", label_("all_tiles"), kSms * int_param(params_, "resident")), 1,
           1}},
         {"block", {kThreads, 1, 1}},
         {"shared_bytes", layout_.shared()},
         {"args", args}});
    for (Json& step : part.steps)
      if (flags_) step["pdl"] = true;
  }

  const Task& task_;
  const Fused& fused_;
  const Json& params_;
  const Label& label_;
  const WindowLeaf& leaf_;
  Layout layout_;
  const StepFlags* flags_;  // may be null
};

// The output channels of a tile, at most `most`: as few tiles as possible, as small as possible.
// The sizes are those that CuTe has an instruction for.
int64_t channels_of_tile(int64_t channels, int64_t most) {
  constexpr std::array<int64_t, 6> kSizes{8, 16, 32, 64, 96, 128};
  const int64_t largest = *std::prev(std::upper_bound(kSizes.begin(), kSizes.end(), most));
  return *std::lower_bound(kSizes.begin(), kSizes.end(),
                           ceil_div(channels, ceil_div(channels, largest)));
}

// The parameters with as many planes and patches as fit. Copies ahead come first: on an H100, they
// take 75.8 us instead of 90.4 us (3 x 3, 48 channels), and 4.78 ms instead of 6.3 ms (1 x 1).
std::optional<Json> with_stages(const Fused& fused, Json params) {
  const bool along = int_param(params, "along") != 0;
  const Layout layout(fused, params);
  const bool copies =
      layout.width() == 4 || (layout.runs() && fused.window->input.shape.back() % 4 == 0);
  for (int64_t planes = int_param(params, "planes"); planes >= 1; planes /= 2)
    for (int64_t raw : {2, 0})
      for (int64_t patches : {3, 2}) {
        if (raw > 0 && !copies) continue;
        params["raw"] = raw;
        params["patches"] = patches;
        if (!along) params["planes"] = planes;
        if (implicit_legal(fused, params)) return params;
      }
  return std::nullopt;
}

// Spends the rest of shared memory: on weights that stay, then on large slices.
Json with_rest(const Fused& fused, Json params) {
  auto offer = [&](const char* name, int64_t value) {
    Json more = params;
    more[name] = value;
    if (implicit_legal(fused, more)) params = std::move(more);
  };
  const int64_t weights = Layout(fused, params).shared_weights();
  if (weights > int_param(params, "stages") && weights <= kMostStages) {
    offer("stages", weights);
    // Weights that stay are worth more than a third patch.
    Json fewer = params;
    fewer["patches"] = 2, fewer["stages"] = weights;
    if (int_param(params, "stages") < weights && implicit_legal(fused, fewer)) params = fewer;
  }
  for (int64_t slice : {2, 4})
    if (int_param(params, "slice") > 0 && Layout(fused, params).staged(8 * slice) <= kMostStaged)
      offer("slice", 8 * slice);
  return params;
}

}  // namespace

int implicit_products(const Task& task, const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  const Window& w = leaf.window;
  if (!w.weighted() || leaf.input.dtype != leaf.weight.dtype) return 0;
  if (w.kind == WindowKind::transposed && w.stride.back() > kMostPhases) return 0;
  if (leaf.input.shape[1] == w.groups) return 0;  // each channel has its own filter
  if (leaf.input.dtype == DType::f16 || leaf.input.dtype == DType::bf16) return 1;
  if (leaf.input.dtype != DType::f32) return 0;
  return task.tf32_convolutions || task.math_mode == MathMode::tf32 ? 1 : 3;
}

void fuse_channel_reductions(const Task& task, Stages& stages) {
  std::map<std::string, std::string> names;
  for (const Stage& stage : stages.list)
    if (const auto* fused = std::get_if<Fused>(&stage))
      names.insert(fused->names.begin(), fused->names.end());
  fuse_after_windows(stages, names, [&](const Fused& joined) {
    if (!joined.reduces() || joined.window->window.groups != 1) return false;
    Fused fused = joined;
    fused.window->wgmma = implicit_products(task, fused);
    if (fused.window->wgmma == 0) return false;
    return implicit_legal(fused, implicit_safe(fused));
  });
}

Json implicit_safe(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  const int64_t phases = leaf.window.kind == WindowKind::transposed ? leaf.window.stride.back() : 1;
  const int64_t width = 16 / int64_t(size_of(leaf.input.dtype));
  const bool along = may_go_along(fused) && 2 * channels_in(fused) <= width + 2;
  // With three products, a thread also holds partial sums, as many as the sums of one phase.
  const int64_t sums = phases + (leaf.wgmma == 3 ? 1 : 0);
  const int64_t tile_n = channels_of_tile(out_of_group(fused), std::max<int64_t>(256 / sums, 16));
  Json params{{"along", along ? 1 : 0},
              {"planes", planes_of(fused, along)},
              {"tile_n", tile_n},
              {"patches", 2},
              {"stages", 4},
              {"slice", stages_results(fused) ? 8 : 0},
              {"resident", 1},
              {"raw", 0}};
  for (const bool lines : {likes_lines(fused), !likes_lines(fused)})
    for (const int64_t blocks : {4, 2, 1}) {
      if (blocks > 1 && blocks * tile_n * sums > 256) continue;
      shape_tile(fused, kConsumers * blocks, lines, params);
      if (auto fits = with_stages(fused, params)) return with_rest(fused, *fits);
    }
  return params;
}

bool implicit_legal(const Fused& fused, const Json& params) {
  const Layout layout(fused, params);
  const int64_t resident = int_param(params, "resident");
  const int64_t slice = int_param(params, "slice");
  if (slice < 0 || slice % 8 || (slice > 0 && int_param(params, "tile_n") % slice)) return false;
  if (!layout.divides() || layout.results() > kMostResults / resident) return false;
  if (fused.reduces() && int_param(params, "tile_n") < fused.axes[1].size) return false;
  const int64_t planes = int_param(params, "planes");
  if (int_param(params, "along")
          ? !may_go_along(fused) || planes != channels_in(fused) || layout.places() < 2
          : planes % 2 != 0)
    return false;
  if (int_param(params, "raw") > 0 && !layout.may_copy()) return false;
  if (layout.places() > kMostPlaces || planes * layout.cells() > kMostCells) return false;
  return layout.shared() + 1024 <= (resident == 2 ? kMostOfTwoImplicit : kMostSharedImplicit);
}

std::vector<RecipeParameter> implicit_parameters(const Fused& fused) {
  const Json safe = implicit_safe(fused);
  const int64_t planes = int_param(safe, "planes"), tall = int_param(safe, "tall"),
                wide = int_param(safe, "wide"), slice = int_param(safe, "slice");
  return {
      {.name = "tile_n",
       .meaning = "output channels of a tile",
       .legal = {int_param(safe, "tile_n"), 128, 64, 32, 16, 8}},
      {.name = "wide",
       .meaning = "results of a tile along the last axis",
       .legal = {wide, wide * 2, 64, 16, 8}},
      {.name = "tall",
       .meaning = "results of a tile along the axis before",
       .legal = {tall, tall * 2, 1, 2, 4, 8, 16}},
      {.name = "deep",
       .meaning = "results of a tile along the axis before that",
       .legal = {1, 2, 4}},
      {.name = "resident", .meaning = "CTAs that an SM holds", .legal = {1, 2}},
      {.name = "planes",
       .meaning = "16-byte cells along the depth in a stage",
       .legal = {planes, 4, 2, 8}},
      {.name = "patches", .meaning = "pipeline stages for patches of the input", .legal = {3, 2}},
      {.name = "raw",
       .meaning = "stages of the input that are copied ahead; 0: through registers",
       .legal = {0, 2, 3}},
      {.name = "stages", .meaning = "pipeline stages for weights", .legal = {4, 3, 6}},
      {.name = "slice",
       .meaning = "output channels that pass through shared memory at a time; 0: none do",
       .legal = {slice, 0, 8, 16, 32}},
      {.name = "along",
       .meaning = "1: a cell holds filter taps along the last axis, not channels",
       .legal = {0, 1}}};
}

ProgramPart implicit_part(const Task& task, const Fused& fused, const Json& params,
                          const Label& label, const StepFlags* flags) {
  return ImplicitWriter(task, fused, params, label, flags).write();
}

}  // namespace cutegen::recipes
