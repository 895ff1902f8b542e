// SPDX-License-Identifier: Apache-2.0
// Cta: one host thread's machine, which runs CTAs of a launch one after another.
//
// Contract: lanes of a warp that go different ways are a list of {pc, mask}; the lowest pc runs
// first and lists merge where their pcs are equal. A warp runs until a barrier, its end or its
// quantum. After run() has returned anything but `ok`, the object must not be used again.
//
// Example: Cta cta(job); if (cta.run(index) != LaunchStatus::ok) report(cta.finding());
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "ptx/forms.h"
#include "ptx/memory.h"
#include "ptx/program.h"

namespace cutegen::ptx {

// What the host threads of a launch share.
struct Job {
  const Program& program;
  const Memory::State& memory;
  const LaunchConfig& config;
  std::vector<std::byte> params;
  std::vector<uint64_t> variable_base;  // by Program::variables
  int64_t shared_bytes = 0;             // static and dynamic
  bool counters = true;
  uint64_t budget = 0;
  const Context& context;
  std::atomic<uint64_t> spent{0};
  std::atomic<int64_t> stop_after;  // CTAs beyond this one need not run
};

struct Split {
  int32_t pc = 0;
  uint32_t mask = 0;
  bool blocked = false;  // waits for other lanes of its warp
};

struct Warp {
  enum class State : uint8_t { running, at_barrier, done } state = State::done;
  std::byte* registers = nullptr;
  uint32_t alive = 0;
  uint32_t turns = 0;
  int index = 0, count = 0;  // count: splits besides the current one
  int barrier = -1;
  int32_t barrier_pc = -1;
  uint64_t executed = 0;  // in this CTA
  Split current, others[32];
};

struct Barrier {
  int waiting = 0;                // warps
  uint32_t arrived = 0;           // threads
  uint32_t expected = 0;          // 0: all that are alive
  uint32_t count = 0, votes = 0;  // of the reduction: predicates that held, threads that voted
};

class Cta {
 public:
  explicit Cta(Job& job);
  LaunchStatus run(int64_t linear);

  [[nodiscard]] const Finding& finding() const { return finding_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // Adds this machine's counts.
  void add_counters(Counters& to) const;
  // Sectors by index of Memory::State::buffers: loads, then stores.
  [[nodiscard]] const std::vector<std::array<uint64_t, 2>>& traffic() const { return traffic_; }

 private:
  enum class Step { yield, barrier, done, failed };
  void set_specials();
  void fill(Warp& w, int32_t offset, int size, uint64_t value);
  void begin(int64_t linear);
  LaunchStatus check_limits();
  Step run_warp(Warp& w);
  bool execute(Warp& w, const Inst& in, uint32_t mask);
  // Puts the current split back and takes the next one to run; false: all wait.
  bool reschedule(Warp& w);
  void merge(Warp& w);
  bool branch(Warp& w, const Inst& in, uint32_t mask);
  bool branch_index(Warp& w, const Inst& in, uint32_t mask);
  bool leave(Warp& w, uint32_t mask);
  // Whether the lanes a collective needs are all here; if not, the split is parked.
  enum class Meet { here, parked, failed };
  Meet meet(Warp& w, uint32_t needed, uint32_t mask, const char* kind);
  Meet collective(Warp& w, const Inst& in, uint32_t& mask);
  Step barrier(Warp& w, const Inst& in, uint32_t mask);
  void release_if_complete(int id);
  void split_off(Warp& w, uint32_t mask);
  bool deadlock();

  // memory_ops.cpp
  bool access(Warp& w, const Inst& in, uint32_t mask);
  bool parameter(Warp& w, const Inst& in);
  bool access_at(Warp& w, const Inst& in, uint32_t mask, Space space, const AddressSummary& s,
                 uint64_t* at);
  bool mixed(Warp& w, const Inst& in, uint32_t mask, uint64_t* at);
  bool scattered(Warp& w, const Inst& in, uint32_t mask, uint64_t* at);
  bool local(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s, const uint64_t* at);
  void transfer(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s, const uint64_t* at,
                std::byte* zero);
  void atomics(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at, std::byte* zero);
  void count_global(const Inst& in, uint32_t mask, const AddressSummary& s, const uint64_t* at,
                    const Buffer* b);
  bool fault(Warp& w, const Inst& in, uint32_t mask, Space space, const uint64_t* at);
  bool report(Warp& w, const char* kind, std::string message, int lane);

  Job& job_;
  const Forms& forms_;
  std::unique_ptr<std::byte[], void (*)(void*)> registers_;
  std::vector<std::byte> shared_, local_;
  std::vector<Warp> warps_;
  Barrier barriers_[16];
  int alive_warps_ = 0;
  int64_t block_threads_ = 0, linear_ = 0;
  std::array<int64_t, 3> at_{0, 0, 0};
  std::vector<uint64_t> runs_, lanes_;  // by pc
  const Buffer* last_[16] = {};
  std::vector<std::array<uint64_t, 2>> traffic_;
  Counters counts_;
  Finding finding_;
  std::string reason_;
  LaunchStatus status_ = LaunchStatus::ok;
};

}  // namespace cutegen::ptx
