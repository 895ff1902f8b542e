// SPDX-License-Identifier: Apache-2.0
// Program: a decoded kernel (a PTX entry), ready to run.
//
// Contract: a Program does not change after decoding, and all host threads share it. Each warp has
// one block of register_bytes for its registers, immediates and special registers. `constants` and
// `specials` list the immediates and special registers, which the simulator writes before a CTA
// starts.
//
// Example: const Inst& in = program.code[pc]; const SourceLine& at = program.lines[pc];
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/machine/inst.h"
#include "ptx/ops/wgmma.h"
#include "ptx/text/ast.h"

namespace cutegen::ptx {

enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  workspace_high,  // workspace address of a cooperative launch, or 0
  workspace_low,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_ctarank,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_nctarank,
  zero,
  one,
  count_
};

struct ConstantSlot {
  int32_t offset = 0;
  uint8_t size = 0;  // bytes per lane; 0: a predicate
  uint64_t bits = 0;
  int32_t variable = -1;  // variable whose address the simulator adds; -1: none
};
struct SpecialSlot {
  int32_t offset = 0;
  uint8_t size = 4;
  Special which = Special::zero;
};
struct SlotRange {
  int32_t offset = 0, bytes = 0;
};
struct SourceLine {
  int line = 0, source_line = 0, source_column = 0;
  std::string_view opcode, text;
};
struct ParamSlot {
  std::string_view name;
  int64_t offset = 0, size = 0, align = 1;
};

struct Program {
  std::string name;
  std::vector<Inst> code;
  std::vector<SourceLine> lines;
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<SlotRange> registers;  // registers of the kernel, sorted by offset
  std::vector<SlotRange> zeroed;     // registers that the kernel may read before it writes them
  bool watch_zeroed = false;         // Inst::watched marks accesses to `zeroed`
  std::vector<std::vector<int32_t>> tables;  // branch targets of brx.idx
  std::vector<std::string> messages;         // messages of unsupported instructions
  std::vector<WgmmaOp> wgmmas;               // a wgmma's Inst::target is an index into `wgmmas`
  // the lists to which Inst::list points
  std::vector<std::shared_ptr<const std::vector<int32_t>>> lists;
  // An instruction reads the registers effects[begin, writes), and writes effects[writes, end).
  struct EffectRange {
    uint32_t begin = 0, writes = 0, end = 0;
  };
  std::vector<int32_t> effects;
  std::vector<EffectRange> effect_of;  // by pc
  std::vector<ParamSlot> params;
  std::vector<int32_t> variables;  // indices of the module variables that the kernel uses
  int64_t param_bytes = 0, register_bytes = 0, static_shared = 0, dynamic_shared_at = 0,
          local_bytes = 0;
  int64_t max_block[3] = {0, 0, 0};
  bool required_block = false;
  // See ptx/decode/patterns.h.
  bool communicates = false;  // threads exchange values
  bool pulls = false;         // CTAs may take tiles from a counter
  bool waits = false;         // CTAs may wait for one another
  bool uses_wgmma = false;    // the program has wgmma or setmaxnreg instructions
  bool uses_clusters = false;
  int64_t cluster[3] = {0, 0, 0};              // .reqnctapercluster; 0: none
  int64_t most_registers = 0, least_ctas = 0;  // .maxnreg, .minnctapersm; 0: none
  int registers_estimate = 0;
};

}  // namespace cutegen::ptx
