// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_grouped.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/extents.h"
#include "recipes/text/parameter.h"
#include "recipes/windows/window_strips.h"
#include "recipes/windows/window_text.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kThreadsOfGroups = 128, kChannelsOfTile = 8, kStripOfGroups = 4;
constexpr int64_t kMostPositions = 896;  // positions of a tile: 14 blocks of 16 for each warp
constexpr int64_t kMostPatch = 3000;     // cells of a patch
constexpr int64_t kLargestOfGroups = 7;  // test shapes leave smaller filters as they are
constexpr int64_t kMostOfGroup = 32;     // channels of a group for which the kernel is faster

// Cells of a patch's row beyond the results, and rows of a patch beyond the results.
int64_t beyond(const Window& w, size_t axis) {
  return (w.kernel[axis] - 1) * w.dilation[axis];
}

// The cells of a row of a patch: whole strips.
int64_t row_cells(const Window& w, int64_t wide) {
  return ceil_div(wide + beyond(w, 1), kStripOfGroups) * kStripOfGroups;
}

// The most cells of a patch with rows of `row` cells.
int64_t cells(const Window& w, int64_t row) {
  return kMostPositions + 64 + beyond(w, 0) * row + beyond(w, 1);
}

class GroupedWriter {
 public:
  GroupedWriter(const Task& task, const Fused& fused, const Label& label)
      : task_(task), fused_(fused), label_(label), window_(fused.window->window) {}

  ProgramPart write() {
    ProgramPart part;
    part.file = label_("kernel") + ".cu";
    std::map<std::string, std::string> t =
        strips_text(task_, fused_, label_, {.each = true, .depth = 8}, args_);
    t.erase("once");
    t["wide"] = label_("WIDE");
    t["tall"] = label_("TALL");
    part.source = fill("kernels/windows/grouped.cu", t);
    const bool pairs = fused_.window->input.shape.back() % 2 == 0;
    set_vectors(part, fused_, label_, pairs ? 2 : 1, kStripOfGroups);
    plan(part);
    for (const std::string& demand : fixed_sizes(fused_)) part.requirements.push_back(demand);
    return part;
  }

 private:
  std::string extent(size_t axis) const { return "(" + fused_.axes[axis].extent + ")"; }

  // Defines the rows of a tile: as many as shared memory and registers hold, in tiles of about the
  // same size.
  void set_tile(ProgramPart& part) const {
    const std::string wide = label_("wide"), tall = label_("tall"), row = label_("row_cells");
    part.symbols[wide] = "max(1," + extent(3) + ")";
    part.symbols[row] = fmt::format("ceil_div({}+{},{})*{}", wide, beyond(window_, 1),
                                    kStripOfGroups, kStripOfGroups);
    const std::string tiles =
        fmt::format("ceil_div({},max(1,{}/{}))", extent(2), kMostPositions, row);
    part.symbols[tall] = fmt::format("max(1,ceil_div({},max(1,{})))", extent(2), tiles);
    part.defines[label_("WIDE")] = wide;
    part.defines[label_("TALL")] = tall;
    part.requirements.push_back(fmt::format("{} <= {}", row, kMostPositions));
    part.requirements.push_back(
        fmt::format("{}*{} <= {}", beyond(window_, 0), row, kMostPatch - cells(window_, 0)));
  }

  void plan(ProgramPart& part) const {
    set_tile(part);
    const std::string n = label_("n"), image = label_("image"), tiles = label_("row_tiles");
    part.symbols[image] = extent(2) + "*" + extent(3);
    part.symbols[n] = extent(0) + "*" + image;
    part.symbols[tiles] =
        fmt::format("{}*({})*ceil_div({},{})*ceil_div({},{})", extent(0), groups_text(fused_),
                    out_of_group_text(fused_), kChannelsOfTile, extent(2), label_("tall"));
    // Places inside an image, and tiles, are 32-bit numbers.
    for (const std::string& most : {image, tiles, last_of_image(fused_)})
      part.requirements.push_back(most + " <= 2000000000");
    require_filter(part, fused_);
    part.steps.push_back({{"id", label_("window")},
                          {"kernel", label_("window")},
                          {"when", n + " > 0"},
                          {"grid", {tiles, 1, 1}},
                          {"block", {kThreadsOfGroups, 1, 1}},
                          {"args", args_}});
  }

  const Task& task_;
  const Fused& fused_;
  const Label& label_;
  const Window& window_;
  Json args_ = Json::array();
};

}  // namespace

bool grouped_apply(const Fused& fused) {
  if (!fused.window || fused.reduces() || fused.window->wgmma == 0) return false;
  const WindowLeaf& leaf = *fused.window;
  const Window& w = leaf.window;
  const int64_t row = row_cells(w, fused.axes.back().size);
  return w.kind == WindowKind::convolution && w.rank() == 2 && w.groups > 1 &&
         size_of(leaf.input.dtype) == 2 && leaf.input.dtype == leaf.weight.dtype &&
         w.stride == Shape{1, 1} && std::max(w.kernel[0], w.kernel[1]) <= kLargestOfGroups &&
         row <= kMostPositions && cells(w, row) <= kMostPatch;
}

bool grouped_faster(const Fused& fused) {
  const int64_t in = fused.window->weight.shape[1], out = out_of_group(fused);
  return in >= 4 && out >= 4 && in <= kMostOfGroup && out <= kMostOfGroup;
}

ProgramPart grouped_part(const Task& task, const Fused& fused, const Label& label) {
  return GroupedWriter(task, fused, label).write();
}

}  // namespace cutegen::recipes
