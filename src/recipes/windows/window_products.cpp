// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_products.h"

#include <algorithm>

#include "recipes/graph/reshape.h"
#include "recipes/spatial/conv_products.h"
#include "recipes/windows/window_implicit.h"

namespace cutegen::recipes {
namespace {

// The least depths for which products of floats are faster. With shorter depths, writing the
// results takes most of the time, and the kernels for windows write whole lines. Guesses, except
// that a depth of 64 in tf32 is too short.
constexpr int64_t kLeastOfTf32 = 256, kLeastOfFloats = 128, kLeastOfHalves = 128,
                  kLeastOfBlocks = 64;
// The least depth of 16-bit products that need a copy. On an H200, 1024 -> 256 channels of 14 x 14
// pixels take 34.7 us (rows.cu: 39.6), 256 -> 1024 33.7 us (33.3); 512 -> 2048, 7 x 7: 51.6 (37.6).
constexpr int64_t kLeastOfCopies = 512;
constexpr int64_t kLeastChannels = 32;  // of the result; a tile has at least 64
constexpr int64_t kTileOfPixels = 64;   // the smallest tile along the pixels of an image

// The finest mode of the outputs must be the mode in which the convolution multiplies.
bool has_mode_of(const Task& task, DType dtype) {
  MathMode finest = task.math_mode;
  for (const TensorInfo* out : task.with_role(TensorRole::output))
    finest = std::min(finest, mode_of(task, *out));
  switch (dtype) {
    case DType::f16:
      return finest == MathMode::fp16;
    case DType::bf16:
      return finest == MathMode::bf16;
    case DType::f32:
      return finest == MathMode::fp32 || finest == MathMode::tf32;
    default:
      return false;
  }
}

// Whether the tiles of a product for each image waste little.
bool fill_tiles(int64_t pixels) {
  const int64_t all = (pixels + kTileOfPixels - 1) / kTileOfPixels * kTileOfPixels;
  return 10 * pixels >= 6 * all;
}

// Whether a product of 16-bit pixels is faster than rows.cu.
bool pays_for_halves(const WindowLeaf& leaf) {
  const int64_t channels = leaf.weight.shape[0], depth = leaf.weight.shape[1];
  if (tma_reads_pixels(leaf.input.dtype, leaf.input.shape)) return depth >= kLeastOfHalves;
  return pixels_of(leaf.input.shape) % 4 == 0 && depth >= std::max(kLeastOfCopies, 2 * channels);
}

bool pays(const Task& task, const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  const ProductForm form = product_form(leaf.window, leaf.input.shape);
  if (form == ProductForm::none || fused.reduces() || leaf.input.dtype != leaf.weight.dtype ||
      !has_mode_of(task, leaf.input.dtype))
    return false;
  const int64_t channels = leaf.weight.shape[0], depth = product(leaf.weight.shape) / channels;
  if (channels < kLeastChannels) return false;
  if (form == ProductForm::blocks) return depth >= kLeastOfBlocks;
  if (size_of(leaf.input.dtype) == 2) return pays_for_halves(leaf);
  return depth >= (implicit_products(task, fused) == 1 ? kLeastOfTf32 : kLeastOfFloats) &&
         fill_tiles(pixels_of(leaf.input.shape));
}

}  // namespace

std::set<std::string> product_convolutions(const Task& task, Stages stages) {
  fuse_channel_reductions(task, stages);
  std::set<std::string> names;
  for (const Stage& stage : stages.list)
    if (const auto* fused = std::get_if<Fused>(&stage);
        fused && fused->window && fused->window->window.weighted() && pays(task, *fused))
      names.insert(fused->insts[size_t(fused->window->inst)].name);
  return names;
}

bool adds_only_copies(const Stages& products, const Stages& stages, size_t convolutions) {
  return products.list.size() <= stages.list.size() + 2 * convolutions;
}

}  // namespace cutegen::recipes
