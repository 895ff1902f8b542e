// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/matrix_unit.h"

#include <fmt/format.h>

#include <bit>

namespace cutegen::ptx {

Meet MatrixUnit::execute(Warp& w, const Inst& in, uint32_t mask) {
  w.split_off(mask);
  const Meet m = scheduler_.meet(w, ~0u, mask, "divergent_collective");
  if (m != Meet::here) return m;
  if (mask != ~0u) {
    cta_.report(w, std::countr_zero(mask),
                {.kind = "divergent_collective",
                 .message = fmt::format(
                     "a matrix instruction needs 32 lanes, lanes {:#010x} are here", mask)});
    return Meet::failed;
  }
  if (in.op == Op::matrix) {
    in.masked(w.registers, in, mask);
    return Meet::here;
  }
  const bool load = in.op == Op::load_matrix;
  if (!load) in.masked(w.registers, in, mask);
  Inst rows = in;  // each of the first lanes gives the address of 16 bytes
  rows.op = load ? Op::load : Op::store;
  rows.vec = 4;
  const uint32_t givers = in.vec == 4 ? ~0u : (1u << 8 * in.vec) - 1;
  if (!memory_.access(w, rows, givers)) return Meet::failed;
  if (load) in.masked(w.registers, in, mask);
  return Meet::here;
}

}  // namespace cutegen::ptx
