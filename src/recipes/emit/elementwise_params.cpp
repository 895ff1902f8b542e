// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "recipes/emit/elementwise.h"
#include "recipes/emit/tile_order.h"
#include "recipes/nest/nest.h"
#include "recipes/nest/register_blocks.h"

namespace cutegen::recipes {

bool is_flat(const Fused& fused) {
  Nest nest = make_nest(fused);
  if (nest.kept.size() != 1) return false;
  for (const Operand& operand : fused.inputs)
    if (operand.counts || operand.sliced() ||
        stride(fused, operand, nest.kept[0]).move == Move::stride)
      return false;
  return std::none_of(fused.outputs.begin(), fused.outputs.end(),
                      [](const FusedOutput& output) { return output.operand.sliced(); });
}

namespace {

std::vector<int64_t> widths_of(const Fused& fused) {
  // A flat kernel computes its tail element by element, so it accepts any size.
  int64_t innermost = is_flat(fused) ? 0 : make_nest(fused).kept.back().size;
  return vector_widths(fused, innermost);
}

// Number of elements that one access moves, including interleaved lists.
int64_t safe_vector(const Fused& fused) {
  const Nest nest = make_nest(fused);
  size_t bytes = 1;
  const auto add = [&](const Operand& operand) {
    if (const int64_t turns = turns_in(nest, operand); turns > 1)
      bytes = std::max(bytes, size_of(operand.dtype) * size_t(turns));
  };
  for (const Operand& operand : fused.inputs) add(operand);
  for (const FusedOutput& output : fused.outputs) add(output.operand);
  for (int64_t width : widths_of(fused))
    if (size_t(width) * bytes <= 16) return width;
  return 1;
}

// Whether L2 delivers the same elements many times although a thread could keep most of them: rows
// lie between two uses of an element, so the element has left the L1 by then.
bool reads_again_from_l2(const Fused& fused) {
  const Nest nest = make_nest(fused);
  const int loop = shared_loop(fused, nest);
  if (loop < 0 || loop + 2 >= int(nest.kept.size())) return false;
  size_t again = 0, once = 0;
  for (const Operand& operand : fused.inputs) {
    if (operand.counts || stride(fused, operand, nest.kept.back()).move == Move::none) continue;
    const bool stays = stride(fused, operand, nest.kept[size_t(loop)]).move == Move::none;
    (stays ? again : once) += size_of(operand.dtype);
  }
  return again >= once;
}

// Whether a thread has to wait for an index from memory before it reads an element.
bool waits_for_indices(const Fused& fused) {
  return std::any_of(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& operand) {
    return std::any_of(operand.starts.begin(), operand.starts.end(), [&](const Start& start) {
      return start.index >= 0 && !fused.inputs[size_t(start.index)].counts;
    });
  });
}

// Whether an element of the result needs several elements of one tensor.
bool reads_neighbours(const Fused& fused) {
  std::map<std::string, int> reads;
  for (const Operand& operand : fused.inputs)
    if (!operand.counts) ++reads[operand.tensor];
  return std::any_of(reads.begin(), reads.end(), [](const auto& item) { return item.second >= 3; });
}

}  // namespace

std::vector<RecipeParameter> elementwise_parameters(const Fused& fused) {
  std::vector<int64_t> vectors = widths_of(fused);
  std::vector<RecipeParameter> list{
      {.name = "vector",
       .meaning = "neighbouring elements that a thread moves in one access",
       .legal = vectors},
      {.name = "items", .meaning = "vectors that a thread loads together", .legal = {2, 4, 1, 8}},
      {.name = "threads", .meaning = "threads of a CTA", .legal = {256, 512, 128}}};
  if (!is_flat(fused) && shared_loop(fused, make_nest(fused)) >= 0)
    list.push_back({.name = "shared",
                    .meaning = "1: a thread's vectors share what does not differ between them",
                    .legal = {1, 0}});
  if (!is_flat(fused) && turned_loop(fused, make_nest(fused)) >= 0)
    list.push_back(
        {.name = "tiled",
         .meaning = "1: a CTA takes a tile that is tall along a transposed operand's axis",
         .legal = {1, 0}});
  if (!is_flat(fused) && block_of(fused, make_nest(fused)))
    list.push_back({.name = "block",
                    .meaning = "1: a thread takes a block, so that it reads and writes in vectors",
                    .legal = {1, 0}});
  if (is_flat(fused))
    list.push_back({.name = "waves",
                    .meaning = "CTAs per SM of a grid-stride loop; 0: one tile a CTA",
                    .legal = {0, 8, 16}});
  return list;
}

constexpr int64_t kManyShort = int64_t{1} << 22;  // elements; a guess

// Whether the kernel only copies many 16-bit elements and cannot move 16 bytes in one access.
bool copies_short_vectors(const Fused& fused) {
  const auto halves = [](const Operand& operand) { return size_of(operand.dtype) == 2; };
  return !is_flat(fused) && fused.insts.size() == 1 && fused.inputs.size() == 1 &&
         fused.outputs.size() == 1 && halves(fused.inputs[0]) && halves(fused.outputs[0].operand) &&
         !fused.inputs[0].counts && !fused.inputs[0].gathered() && safe_vector(fused) == 4 &&
         make_nest(fused).rows() >= kManyShort;
}

constexpr int64_t kLarge = int64_t{1} << 26;  // elements that keep all SMs busy for long
// That a thread should load together. On an H200, dequantizing 14336 rows of 4096 int8 weights
// takes 48.5 us with one vector of 8 bytes a thread, 46.2 us with two.
constexpr int64_t kBytesInFlight = 16;

// Returns how many vectors a thread loads together if vectors are narrow.
int64_t items_of_narrow_vectors(const Fused& fused, const Nest& nest, int64_t vector) {
  size_t bytes = 1;
  for (const Operand& operand : fused.inputs)
    if (!operand.counts && stride(fused, operand, nest.kept.back()).move != Move::none)
      bytes = std::max(bytes, size_of(operand.dtype));
  return std::clamp<int64_t>(kBytesInFlight / (vector * int64_t(bytes)), 1, 4);
}

// Whether the results take at most a quarter of the bytes of each input.
bool stores_quarters(const Fused& fused) {
  size_t most = 0, least = 8;
  for (const FusedOutput& output : fused.outputs)
    most = std::max(most, size_of(output.operand.dtype));
  for (const Operand& input : fused.inputs) least = std::min(least, size_of(input.dtype));
  return !fused.inputs.empty() && 4 * most <= least;
}

Json elementwise_safe(const Fused& fused) {
  // Times on an H200 with one vector a thread, and with two:
  // - a lookup of 32768 rows of 1.5 KB, plus a row of another table: 30.5 us, 28.4 us
  // - batch norm of 4 GB, whose values of a channel cost more instructions than a vector: 2.18 ms,
  //   2.05 ms
  // - a local response norm: 55.1 us, 50.0 us
  const Nest nest = make_nest(fused);
  const bool large = !is_flat(fused) && nest.rows() >= kLarge;
  const bool two = waits_for_indices(fused) || large || reads_neighbours(fused);
  const int64_t vector = safe_vector(fused);
  int64_t items = is_flat(fused) ? 1 : items_of_narrow_vectors(fused, nest, vector);
  // On an H200, quantizing 33.6 million floats to int8 takes 50.4 us with one vector a thread, 45.6
  // us with two.
  if (is_flat(fused) && stores_quarters(fused)) items = 2;
  if (two) items = std::max<int64_t>(items, 2);
  // On an H200, a copy of 25.7 MB in vectors of 8 bytes takes 22.4 us with one vector a thread and
  // 19.3 us with four.
  if (copies_short_vectors(fused)) items = 4;
  Json params{{"vector", vector}, {"items", items}, {"threads", 256}};
  if (!is_flat(fused) && shared_loop(fused, make_nest(fused)) >= 0) {
    // On an H100, rotary embedding of [8, 32, 2048, 128] takes 122.5 us this way, else 126.1 us.
    // On an H200, [2, 32, 4096, 128] take 40.2 us with 256 threads and 38.7 us with 128.
    const bool shares = reads_again_from_l2(fused);
    params["shared"] = shares ? 1 : 0;
    if (shares) params["items"] = 4, params["threads"] = 128;
  }
  if (!is_flat(fused) && turned_loop(fused, nest) >= 0)
    params["tiled"] = params.value("shared", 0) == 0 ? 1 : 0;
  if (!is_flat(fused) && block_of(fused, nest)) params["block"] = 1, params["items"] = 1;
  if (is_flat(fused)) params["waves"] = 0;
  return params;
}

}  // namespace cutegen::recipes
