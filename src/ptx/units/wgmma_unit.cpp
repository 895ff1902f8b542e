// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/wgmma_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "ptx/cta/register_pool.h"
#include "ptx/ops/warp_ops.h"
#include "ptx/ops/wgmma_columns.h"

namespace cutegen::ptx {
namespace {

constexpr int kRowsOfGroup = 64;

uint64_t word_of(const Warp& w, int32_t slot) {
  uint64_t bits = 0;
  std::memcpy(&bits, w.registers + slot, sizeof bits);
  return bits;
}

// A register of A holds half a slice of eight rows.
void pack_registers(const Warp& w, const int32_t* slots, std::byte* slices) {
  for (size_t row = 0; row < kWgmmaRows; ++row)
    for (size_t half = 0; half < 2; ++half)
      std::memcpy(slices + kWgmmaSliceBytes * row + 16 * half,
                  w.registers + slots[row / 8 + 2 * half] + 16 * (row % 8), 16);
}

// Describes how the step differs from what another warp of the warpgroup executed.
std::string out_of_step(const CtaState& cta, const Warp& w, const WarpgroupSteps::Step& step,
                        const WarpgroupSteps::Step& other) {
  if (other.pc != step.pc)
    return fmt::format("warp {} is here, but another warp of its warpgroup executed {}", w.index,
                       cta.place(other.pc));
  return fmt::format(
      "the warps of a warpgroup give different descriptors: A {:#x}, B {:#x} in warp {}, but A "
      "{:#x}, B {:#x} in another",
      step.a, step.b, w.index, other.a, other.b);
}

// The addresses of a tile's chunks. After them, the first address repeats until their number is a
// multiple of 32.
struct Chunks {
  SharedTile of;
  uint32_t low = 0, high = 0;  // bounds of the addresses
  uint32_t at[2 * kWgmmaMostColumns];
};

// Kernels use few descriptors again and again, so each host thread remembers some.
const Chunks& chunks_of(const SharedTile& tile) {
  static thread_local std::array<Chunks, 64> known;
  const uint32_t place = tile.d.start >> 5 ^ tile.d.start >> 10 ^ uint32_t(tile.first);
  Chunks& c = known[place % known.size()];
  if (c.of == tile) return c;
  c.of = tile;
  const int count = 2 * tile.rows;
  tile.chunks(c.at);
  const auto [low, high] = std::minmax_element(c.at, c.at + count);
  c.low = *low, c.high = *high;
  for (int i = count; i % 32 != 0; ++i) c.at[i] = c.at[0];
  return c;
}

// Returns a buffer for the converted columns of B. If the columns are not known, writes B to `b`.
std::byte* columns_of(const CtaState& cta, const WgmmaOp& op, uint64_t descriptor,
                      const uint32_t* chunks, std::byte* b, bool& known) {
  const WgmmaColumns::Key key{.run = op.run,
                              .descriptor = descriptor,
                              .n = op.n,
                              .mn_major = op.b_mn_major,
                              .version = cta.shared_version};
  WgmmaColumns& cache = WgmmaColumns::of_thread();
  std::byte* columns = cache.current(key);
  known = columns != nullptr;
  if (known) return columns;
  pack_slices({.d = read_descriptor(descriptor), .mn_major = op.b_mn_major, .rows = op.n}, chunks,
              cta.shared.data(), b);
  return cache.find(key, b, known);
}

}  // namespace

// A matrix in shared memory, and the part that a warp reads.
struct WgmmaUnit::Operand {
  const char* name;
  SharedTile whole, part;
  uint32_t low = 0, end = 0;  // bounds of the addresses of `part`
};

void WgmmaUnit::report(const Warp& w, const char* kind, std::string message) {
  cta_.report(w, std::countr_zero(w.current.mask), {.kind = kind, .message = std::move(message)});
}

Meet WgmmaUnit::execute(Warp& w, const Inst& in, uint32_t mask) {
  w.split_off(mask);
  const Meet m = scheduler_.meet(w, ~0u, mask, "divergent_collective");
  if (m != Meet::here) return m;
  if (mask != ~0u) {
    report(w, "divergent_collective",
           fmt::format("wgmma needs 32 lanes, lanes {:#010x} are here", mask));
    return Meet::failed;
  }
  WarpgroupSteps::Step step{.pc = w.current.pc, .a = 0, .b = 0};
  if (in.sub == kWgmmaMultiply) {
    const WgmmaOp& op = cta_.job.program.wgmmas[size_t(in.target)];
    if (!op.a_in_registers) step.a = word_of(w, in.list[op.d]);
    step.b = word_of(w, in.list[op.b_slot()]);
  }
  if (!in_step(w, step)) return Meet::failed;
  bool fine = true;
  if (in.sub == kWgmmaMultiply) fine = multiply(w, in, step);
  if (in.sub == kWgmmaFence) ++cta_.wgmma->orders[size_t(w.index)].fences;
  if (in.sub == kWgmmaCommit) ++cta_.wgmma->orders[size_t(w.index)].committed;
  if (in.sub == kWgmmaWait) wait(w, in);
  if (in.sub == kMoreRegisters || in.sub == kFewerRegisters) set_registers(cta_, w, in);
  return fine ? Meet::here : Meet::failed;
}

// Checks that the four warps of a warpgroup execute the same instructions in the same order.
bool WgmmaUnit::in_step(const Warp& w, const WarpgroupSteps::Step& step) {
  const int group = w.index / WarpgroupSteps::kWarps, first = group * WarpgroupSteps::kWarps;
  if (size_t(first) + WarpgroupSteps::kWarps > cta_.warps.size()) {
    report(w, "divergent_warpgroup",
           fmt::format("wgmma needs a warpgroup of four warps, but the CTA has {}",
                       cta_.warps.size()));
    return false;
  }
  WarpgroupSteps& steps = cta_.wgmma->steps[size_t(group)];
  const auto* other = steps.execute(w.index - first, step);
  if (other) return report(w, "divergent_warpgroup", out_of_step(cta_, w, step, *other)), false;
  for (int u = first; u < first + WarpgroupSteps::kWarps; ++u) {
    const bool gone = cta_.warps[size_t(u)].state == Warp::State::done;
    if (!steps.too_far() && !(gone && steps.executed(u - first) < steps.executed(w.index - first)))
      continue;
    report(w, "divergent_warpgroup",
           fmt::format("warp {} of the warpgroup does not execute this instruction", u));
    return false;
  }
  return true;
}

bool WgmmaUnit::ended(const Warp& w) {
  if (!cta_.wgmma || !cta_.job.checks.barriers) return true;
  const auto* missed = cta_.wgmma->steps[size_t(w.index) / WarpgroupSteps::kWarps].missed(
      w.index % WarpgroupSteps::kWarps);
  if (!missed) return true;
  Warp at = w;
  at.current = {.pc = missed->pc, .mask = 1, .blocked = false};
  report(at, "divergent_warpgroup",
         fmt::format("warp {} ended, but another warp of its warpgroup executed this "
                     "instruction: all four warps must execute it",
                     w.index));
  return false;
}

void WgmmaUnit::wait(Warp& w, const Inst& in) {
  WgmmaState& s = *cta_.wgmma;
  const int first = w.index / WarpgroupSteps::kWarps * WarpgroupSteps::kWarps;
  s.orders[size_t(w.index)].waits = true;
  w.state = Warp::State::waiting;
  w.barrier = kAtWgmmaWait, w.waits_at = w.current.pc;
  for (int u = first; u < first + WarpgroupSteps::kWarps; ++u)
    if (!s.orders[size_t(u)].waits) return;
  for (int u = first; u < first + WarpgroupSteps::kWarps; ++u) {
    s.orders[size_t(u)].waits = false;
    s.complete(u, in.imm);
    if (cta_.hazards && cta_.hazards->clocks.vector())
      cta_.hazards->clocks.wait_products(u, s.orders[size_t(u)].completed);
    cta_.warps[size_t(u)].state = Warp::State::running;
  }
}

bool WgmmaUnit::uniform(const Warp& w, int32_t slot, const char* what) {
  uint64_t words[32];
  std::memcpy(words, w.registers + slot, sizeof words);
  uint64_t differ = 0;
  for (const uint64_t word : words) differ |= word ^ words[0];
  if (differ == 0) return true;
  const auto* const other =
      std::find_if(words, words + 32, [&](uint64_t x) { return x != words[0]; });
  report(w, "divergent_warpgroup",
         fmt::format("{} differs between lanes 0 and {}", what, other - words));
  return false;
}

// Applies the checks of a load to the tile's chunks. Faults are rare, so the checks first examine
// the whole tile, and look for the faulty chunk only if the tile has a fault.
bool WgmmaUnit::check_reads(Warp& w, const SharedTile& tile, const uint32_t* chunks) {
  const bool copies = cta_.copies.any(), races = cta_.races && cta_.hazards->shared;
  const SharedRaces::Product product{
      .warp = w.index, .pc = w.current.pc, .label = cta_.wgmma->next_group(w.index)};
  const bool fine = !races || cta_.hazards->shared->multiply_tile(product, tile, chunks);
  if (fine && !copies) return true;
  Inst load;
  load.op = Op::load, load.space = Space::shared, load.size = 4, load.vec = 4;
  for (int first = 0; first < 2 * tile.rows; first += 32) {
    uint64_t at[32];
    for (int lane = 0; lane < 32; ++lane) at[lane] = chunks[first + lane];
    const WarpAccess a{.warp = w, .in = load, .mask = ~0u, .sum = summarize(at, ~0u), .at = at};
    if (copies && !checks_.copies(a)) return false;
    if (!fine && !(checks_.shared(a) && checks_.visible(a))) return false;
  }
  return true;
}

// Returns the addresses of the operand's chunks, or nullptr after it has reported a `Finding`.
const uint32_t* WgmmaUnit::checked(Warp& w, Operand& o) {
  if (const auto fault = o.whole.fault()) {
    report(w, "bad_descriptor", fmt::format("the descriptor of {} has {}", o.name, *fault));
    return nullptr;
  }
  const Chunks& chunks = chunks_of(o.part);
  if (chunks.high + 16 > cta_.shared.size()) {
    report(w, "out_of_bounds",
           fmt::format("wgmma reads {} at offset {} of shared memory, which has {} bytes "
                       "(start address {}, leading byte offset {}, stride byte offset {})",
                       o.name, chunks.high, cta_.shared.size(), o.whole.d.start, o.whole.d.leading,
                       o.whole.d.stride));
    return nullptr;
  }
  o.low = chunks.low, o.end = chunks.high + 16;
  if (!check_reads(w, o.part, chunks.at)) return nullptr;
  return chunks.at;
}

bool WgmmaUnit::multiply(Warp& w, const Inst& in, const WarpgroupSteps::Step& step) {
  const WgmmaOp& op = cta_.job.program.wgmmas[size_t(in.target)];
  const uint32_t scale = predicate_at(w.registers, in.list[op.scale_slot()]);
  if (scale != 0 && scale != ~0u)
    return report(w, "divergent_warpgroup", "scale-d differs between lanes"), false;
  if (!uniform(w, in.list[op.b_slot()], "the descriptor of B")) return false;
  if (!op.a_in_registers && !uniform(w, in.list[op.d], "the descriptor of A")) return false;
  if (cta_.races && !checks_.wgmma().product(w, in, op)) return false;
  alignas(64) std::byte a[kWgmmaRows * kWgmmaSliceBytes],
      b[size_t{kWgmmaMostColumns} * kWgmmaSliceBytes];
  WgmmaState::Read read{.pc = w.current.pc, .warp = w.index};
  read.group = cta_.wgmma->orders[size_t(w.index)].committed + 1;
  if (op.a_in_registers) {
    pack_registers(w, in.list + op.d, a);
  } else {
    const MatrixDescriptor d = read_descriptor(step.a);
    const int row = w.index % WarpgroupSteps::kWarps * kWgmmaRows;
    Operand o{.name = "A",
              .whole = {.d = d, .mn_major = op.a_mn_major, .first = 0, .rows = kRowsOfGroup},
              .part = {.d = d, .mn_major = op.a_mn_major, .first = row, .rows = kWgmmaRows}};
    const uint32_t* chunks = checked(w, o);
    if (!chunks) return false;
    pack_slices(o.part, chunks, cta_.shared.data(), a);
    read.tiles[1] = o.part, read.low[1] = o.low, read.end[1] = o.end;
  }
  const SharedTile tile{
      .d = read_descriptor(step.b), .mn_major = op.b_mn_major, .first = 0, .rows = op.n};
  Operand o{.name = "B", .whole = tile, .part = tile};
  const uint32_t* chunks = checked(w, o);
  if (!chunks) return false;
  read.tiles[0] = o.part, read.low[0] = o.low, read.end[0] = o.end;
  if (cta_.races) cta_.wgmma->reads.push_back(read);
  bool known = false;
  std::byte* columns = columns_of(cta_, op, step.b, chunks, b, known);
  op.run({.a = a,
          .b = b,
          .columns = columns,
          .has_columns = known,
          .registers = w.registers,
          .d = in.list,
          .n = op.n,
          .clear = scale == 0,
          .negate = op.negate,
          .saturate = op.saturate});
  return true;
}

}  // namespace cutegen::ptx
