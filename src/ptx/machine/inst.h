// SPDX-License-Identifier: Apache-2.0
// Inst: one decoded PTX instruction. The header also defines the address map of the simulated GPU.
//
// Contract: this header has plain data and no inline functions. The build compiles the instruction
// handlers (ptx/handlers) once for each x86-64 level. The handlers include only headers without
// inline functions, because inline functions compiled with different flags would violate the
// one-definition rule. Operands are byte offsets into a warp's register file. A register takes 32
// adjacent values, one per lane; a predicate is one 32-bit mask. The register file also holds
// immediates and special registers.
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
  matrix,        // mma, movmatrix: Inst::masked executes all 32 lanes
  load_matrix,   // ldmatrix: loads rows, which Inst::masked distributes to lanes
  store_matrix,  // stmatrix: stores the rows that Inst::masked has gathered from lanes
  async_copy,
  async_commit,
  async_wait,
  wgmma,            // wgmma.* and setmaxnreg; see ptx/ops/wgmma.h
  cluster_barrier,  // ptx/ops/cluster.h
  cluster_map,
  mbarrier,   // ptx/ops/mbarrier.h
  bulk_copy,  // cp.async.bulk, cp.reduce.async.bulk; see ptx/ops/bulk_copy.h
  bulk_commit,
  bulk_wait,
  unsupported
};

// The kinds of instructions that the counters distinguish.
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
  mma_bits,  // 4-bit and 1-bit types
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
  // `full` executes all 32 lanes. If `full` is null, `masked` executes all 32 lanes.
  AluFn full = nullptr, masked = nullptr;
  int32_t d = -1, a = -1, b = -1, c = -1, e = -1;
  int32_t guard = -1;
  int32_t target = -1;  // depends on `op`: branch target, flags, bytes, or index into a list
  int32_t v[4] = {-1, -1, -1, -1};  // registers of a load or store; -1: `_`, the sink symbol
  int64_t imm = 0;                  // address offset, or an immediate operand
  const int32_t* list = nullptr;    // further operands, stored in Program::lists
  Op op = Op::alu;
  Kind kind = Kind::other;
  Space space = Space::generic;
  uint16_t flops = 0;    // per lane
  uint8_t sub = 0;       // variant of the operation `op`, or rounding flags
  uint8_t size = 0;      // bytes of one element in memory
  uint8_t reg_size = 0;  // bytes per lane in the register
  uint8_t vec = 1;
  bool sign = false;              // sign-extend a load
  bool wide_address = true;       // the address register has 64 bits
  bool constant_address = false;  // all lanes use one address, which the decoder computes
  bool guard_negated = false;
  bool ordered = false;   // whether the access is volatile, relaxed, acquire or release
  bool releases = false;  // whether the access is a release at a wider scope than .cta
  // Whether the instruction is an atomic with which CTAs may take tiles from a counter
  // (ptx/decode/patterns.h).
  bool pulls = false;
  // Whether the instruction uses a register of a wgmma, or a register that the kernel may read
  // before it writes the register.
  bool watched = false;
  bool aligned = false;  // all lanes of the warp must arrive at the barrier together
};

// Values of Inst::sub for float operations: rounding mode and flags.
inline constexpr uint8_t kRoundNearest = 0, kRoundZero = 1, kRoundDown = 2, kRoundUp = 3;
inline constexpr uint8_t kRoundMask = 3, kFtz = 4, kSaturate = 8, kRelu = 16, kNaN = 32,
                         kFinite = 64;  // satfinite

// Values of Inst::sub for Op::fence.
inline constexpr uint8_t kNoFence = 0, kFenceGpu = 1, kFenceCta = 2, kDependencyWait = 3,
                         kSleep = 4, kFenceProxy = 5,  // fence.proxy.async
    kFenceProxyShared = 6, kFenceProxyGlobal = 7,      // for one space
    kFenceMbarrierInit = 8;                            // fence.mbarrier_init

// The map of generic addresses. Global memory begins at kGlobalBase. Address windows below
// kGlobalBase map the other state spaces.
inline constexpr uint64_t kSharedWindow = 0x0100000000, kLocalWindow = 0x0200000000,
                          kParamWindow = 0x0300000000, kWindowBytes = 0x0100000000,
                          kGlobalBase = 0x1000000000;
// The window of shared memory is an array of ranges of kSharedOfCta bytes: range 0 is the executing
// CTA's own memory, and range r + 1 is the memory of the CTA with cluster rank r.
inline constexpr uint64_t kSharedOfCta = uint64_t{1} << 24;

// A summary of the addresses that the active lanes of a warp access.
struct AddressSummary {
  uint64_t low = 0, high = 0;  // lowest and highest address of the active lanes
  // The bitwise OR of all addresses. If `contiguous` is set, `bits` may combine only enough
  // addresses to find the alignment.
  uint64_t bits = 0;
  bool contiguous = false;  // all 32 lanes are active and access adjacent elements in order
  bool uniform = false;     // all active lanes have the same address
};

}  // namespace cutegen::ptx
