// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/register_pool.h"

#include <algorithm>

namespace cutegen::ptx {
namespace {

constexpr int64_t kRegisterFile = 65536;  // registers per SM
constexpr int64_t kMostOfThread = 256, kGrain = 8, kLanes = 32, kMostCtas = 32;

// Gives the warp `wanted` registers per thread. False: the pool has too few.
bool take(WgmmaState& s, WgmmaState::Order& o, int64_t wanted) {
  const int64_t more = std::max<int64_t>(0, wanted - o.registers) * kLanes;
  if (more > s.free_registers) return false;
  s.free_registers -= more;
  o.registers = std::max(o.registers, wanted);
  return true;
}

// Call it after a release: resumes warps that wait for registers.
void serve(CtaState& cta) {
  for (Warp& w : cta.warps) {
    if (w.state != Warp::State::waiting || w.barrier != kAtRegisters) continue;
    const Inst& in = cta.job.program.code[size_t(w.waits_at)];
    if (take(*cta.wgmma, cta.wgmma->orders[size_t(w.index)], in.imm))
      w.state = Warp::State::running;
  }
}

}  // namespace

int64_t first_registers(const Program& p, size_t warps) {
  if (p.most_registers > 0)
    return (std::min(kMostOfThread, p.most_registers) + kGrain - 1) / kGrain * kGrain;
  const int64_t ctas = std::clamp<int64_t>(p.least_ctas, 1, kMostCtas);
  return std::min(kMostOfThread,
                  kRegisterFile / (int64_t(warps) * kLanes * ctas) / kGrain * kGrain);
}

void set_registers(CtaState& cta, Warp& w, const Inst& in) {
  WgmmaState& s = *cta.wgmma;
  WgmmaState::Order& o = s.orders[size_t(w.index)];
  if (in.sub == kFewerRegisters) {
    s.free_registers += std::max<int64_t>(0, o.registers - in.imm) * kLanes;
    o.registers = std::min(o.registers, in.imm);
    return serve(cta);
  }
  if (take(s, o, in.imm)) return;
  w.state = Warp::State::waiting;
  w.barrier = kAtRegisters, w.waits_at = w.current.pc;
}

}  // namespace cutegen::ptx
