// SPDX-License-Identifier: Apache-2.0
// Registry: each instruction handler file (ptx/handlers) registers its functions here, under the
// names of instruction forms (ptx/decode/forms.h). This header has no inline functions (inst.h says
// why).
//
// Example: void add_integer(Registry& r) { r.add("add", "s32", "www", full, masked, kind, 0); }
#pragma once

#include "ptx/machine/inst.h"
#include "ptx/ops/wgmma.h"

namespace cutegen::ptx {

// A matrix product D = A * B + C that a warp executes. Inst::list has the registers of D, A, B and
// C, in this order.
struct MatrixForm {
  AluFn run = nullptr;
  uint8_t d = 0, a = 0, b = 0, c = 0;  // registers
  uint8_t size_d = 4, size_ab = 4;     // bytes per lane of one register
  uint16_t flops = 0;                  // per lane
  Kind kind = Kind::other;
};

class Registry {
 public:
  virtual void add(const char* base, const char* type, const char* signature, AluFn full,
                   AluFn masked, Kind kind, int flops) = 0;
  virtual void add_matrix(const char* shape, const char* types, const MatrixForm& form) = 0;

 protected:
  ~Registry() = default;
};

// Writes the addresses of all 32 lanes to `out`, and returns a summary of the addresses of the
// active lanes.
using AddressFn = AddressSummary (*)(const std::byte* lanes, bool wide, int64_t offset,
                                     uint64_t stride, uint32_t mask, uint64_t* out);

#define CG_PTX_HANDLERS(isa)                           \
  namespace isa {                                      \
  void add_integer(Registry& registry);                \
  void add_bits(Registry& registry);                   \
  void add_float(Registry& registry);                  \
  void add_compare(Registry& registry);                \
  void add_convert(Registry& registry);                \
  void add_half(Registry& registry);                   \
  void add_narrow(Registry& registry);                 \
  void add_matrix(Registry& registry);                 \
  AddressFn addresses();                               \
  /* nullptr: no such form */                          \
  WgmmaFn wgmma(WgmmaType a, WgmmaType b, WgmmaSum d); \
  }
CG_PTX_HANDLERS(base)
CG_PTX_HANDLERS(v3)
CG_PTX_HANDLERS(v4)

}  // namespace cutegen::ptx
