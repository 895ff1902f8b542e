// SPDX-License-Identifier: Apache-2.0
// Inst: one decoded instruction, and the address map of the simulated machine.
//
// Contract: plain data only. The build compiles the handler files once for each instruction set of
// the host. They include only headers like this one, so that no inline function is compiled twice
// with different flags. Operands are byte offsets into a warp's register file, where a register is
// 32 adjacent lanes and a predicate is one 32-bit mask. Immediates and special registers have slots
// in it, too.
//
// Example: in.full(warp_registers, in, ~0u);
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutegen::ptx {

enum class Op : uint8_t {
  alu,
  load,
  store,
  atomic,
  branch,
  branch_index,
  exit,
  barrier,
  shuffle,
  vote,
  active_mask,
  warp_reduce,
  match,
  warp_sync,
  elect,
  fence,
  trap,
  print,
  assert_fail,
  clock,
  matrix,        // mma, movmatrix: Inst::masked on the whole warp
  load_matrix,   // a shared load of rows, then Inst::masked spreads them
  store_matrix,  // Inst::masked gathers rows, then a shared store
  async_copy,
  async_commit,
  async_wait,
  wgmma,            // wgmma.* and setmaxnreg: ptx/ops/wgmma.h
  cluster_barrier,  // ptx/ops/cluster.h
  cluster_map,
  mbarrier,   // ptx/ops/mbarrier.h
  bulk_copy,  // cp.async.bulk, cp.reduce.async.bulk: ptx/ops/bulk_copy.h
  bulk_commit,
  bulk_wait,
  unsupported
};

// The class under which the counters count an instruction.
enum class Kind : uint8_t {
  move,
  integer,
  fp32,
  fma,
  sfu,
  convert,
  half,
  fp64,
  compare,
  load_global,
  store_global,
  load_shared,
  store_shared,
  load_local,
  store_local,
  load_const,
  atomic,
  shuffle,
  vote,
  barrier,
  branch,
  mma_half,  // f16 and bf16
  mma_tf32,
  mma_f64,
  mma_fp8,
  mma_int8,
  mma_bits,  // 4 bits and 1 bit
  wgmma_half,
  wgmma_tf32,
  wgmma_fp8,
  wgmma_int8,
  other,
  count_
};

enum class Space : uint8_t { generic, global, shared, local, param, constant };

struct Inst;
using AluFn = void (*)(std::byte* registers, const Inst& in, uint32_t mask);

struct Inst {
  AluFn full = nullptr, masked = nullptr;  // full: runs all 32 lanes; if null, masked runs them
  int32_t d = -1, a = -1, b = -1, c = -1, e = -1;
  int32_t guard = -1;
  int32_t target = -1;              // branch target; index into Program::tables, messages or wgmmas
  int32_t v[4] = {-1, -1, -1, -1};  // registers of a load or store; -1: a sink
  int64_t imm = 0;                  // address offset, or an operand of the operation
  const int32_t* list = nullptr;    // further operands (in Program::lists)
  Op op = Op::alu;
  Kind kind = Kind::other;
  Space space = Space::generic;
  uint16_t flops = 0;    // per lane
  uint8_t sub = 0;       // the operation within its family, or rounding flags
  uint8_t size = 0;      // bytes of one element in memory
  uint8_t reg_size = 0;  // bytes per lane in the register
  uint8_t vec = 1;
  bool sign = false;              // sign-extend a load
  bool wide_address = true;       // the address register has 64 bits
  bool constant_address = false;  // the address is the same for all lanes and known when decoding
  bool guard_negated = false;
  bool ordered = false;   // volatile, relaxed, acquire or release
  bool releases = false;  // a release at a wider scope than .cta
  // An atomic by which CTAs may take work from a counter (ptx/decode/patterns.h).
  bool pulls = false;
  bool watched = false;  // uses a register of wgmma, or one that may be read before it is written
  bool aligned = false;  // a barrier that needs all lanes of the warp at once
};

// Rounding and flags of float operations (Inst::sub).
inline constexpr uint8_t kRoundNearest = 0, kRoundZero = 1, kRoundDown = 2, kRoundUp = 3;
inline constexpr uint8_t kRoundMask = 3, kFtz = 4, kSaturate = 8, kRelu = 16, kNaN = 32,
                         kFinite = 64;  // satfinite

// Kinds of Op::fence (Inst::sub).
inline constexpr uint8_t kNoFence = 0, kFenceGpu = 1, kFenceCta = 2, kDependencyWait = 3,
                         kSleep = 4, kFenceProxy = 5,  // fence.proxy.async
    kFenceProxyShared = 6, kFenceProxyGlobal = 7,      // for one space
    kFenceMbarrierInit = 8;                            // fence.mbarrier_init

// Generic addresses. Global memory begins at kGlobalBase; the windows below map the other spaces.
inline constexpr uint64_t kSharedWindow = 0x0100000000, kLocalWindow = 0x0200000000,
                          kParamWindow = 0x0300000000, kWindowBytes = 0x0100000000,
                          kGlobalBase = 0x1000000000;
// The shared window has parts of this size: the CTA's own memory, then one for each cluster rank.
inline constexpr uint64_t kSharedOfCta = uint64_t{1} << 24;

// What the addresses of a warp have in common.
struct AddressSummary {
  uint64_t low = 0, high = 0;  // lowest and highest address of the active lanes
  // The bitwise or of all addresses (if contiguous: of enough of them to find the alignment).
  uint64_t bits = 0;
  bool contiguous = false;  // all 32 lanes are active and access adjacent elements in order
  bool uniform = false;     // equal in all active lanes
};

}  // namespace cutegen::ptx
