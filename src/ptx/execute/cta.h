// SPDX-License-Identifier: Apache-2.0
// Cta: a machine for one CTA of a launch at a time; a host thread may hold several and let them
// take turns.
//
// Contract: lanes of a warp that go different ways are a list of {pc, mask}; the lowest pc runs
// first and lists merge where their pcs are equal. A warp runs until a barrier, its end, its
// quantum, or until it spins. After turn() has returned `ended` the object may begin() another CTA,
// after `failed` it must not be used again.
//
// Example: Cta cta(job); cta.begin(index, counting); while (cta.turn() == Cta::Turn::going) {}
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "ptx/checks/hazards.h"
#include "ptx/decode/forms.h"
#include "ptx/decode/program.h"
#include "ptx/model/chain.h"
#include "ptx/model/counting.h"
#include "ptx/ops/async_copy.h"
#include "ptx/state/memory.h"

namespace cutegen::ptx {

// A sample of the CTAs stands for all of the grid: for each CTA that runs, others take work from
// the counter too. Only one host thread runs such a launch.
struct Pulls {
  struct Word {
    std::array<std::byte, 8> first{};  // what it held at the beginning of the launch
    uint64_t pulls = 0;
    uint8_t bytes = 0;
  };
  double stands_for = 1;  // CTAs, for each one that runs
  std::map<std::byte*, Word> words;
  // How many others take work before this one does.
  uint64_t before(std::byte* place, uint8_t bytes);
  // The counters as they were at the beginning.
  void restore();
};

// What the host threads of a launch share.
struct Job {
  const Program& program;
  const Memory::State& memory;
  const LaunchConfig& config;
  std::vector<std::byte> params;
  std::vector<uint64_t> variable_base;  // by Program::variables
  int64_t shared_bytes = 0;             // static and dynamic
  Checks checks;
  uint64_t budget = 0;
  const Context& context;
  std::atomic<uint64_t> spent{0};
  std::atomic<int64_t> stop_after;         // CTAs beyond this one need not run
  uint64_t workspace = 0;                  // of a cooperative launch
  std::unique_ptr<LaunchHazards> hazards;  // nullptr: nothing is looked for
  std::unique_ptr<Chain> chain;            // of the first warp of CTA `traced`
  int64_t traced = -1;
  uint32_t unsettled = 0;  // epochs from here on are of launches that may still run; 0: none
  std::atomic<bool> waited{false};  // some warp has waited for them
  Order order = Order::in_order;
  uint64_t order_seed = 1;
  bool fair = false;             // CTAs go on in step: a warp that pulls gives way
  std::unique_ptr<Pulls> pulls;  // of a sampled launch whose CTAs pull

  // Polls of one place after which a warp gives way: few where CTAs that wait begin first.
  uint32_t spins() const { return order == Order::in_order ? 64 : 16; }
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
  uint64_t executed = 0;      // in this CTA
  uint64_t spin_address = 0;  // read again and again
  uint32_t spins = 0;         // such reads since anything else was read, or anything written
  uint64_t polled_at = 0;     // `executed` at the last of them
  uint64_t polled = 0;        // instructions of loops that only polled
  double slept_ns = 0;        // with the warps that it has met at barriers
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
  // going: call again; spinning: so, but every warp that can run polls memory for another's write.
  enum class Turn { going, spinning, ended, failed };
  explicit Cta(Job& job);
  // What the CTA does is counted by `counting`, which CTAs of one host thread may share.
  void begin(int64_t linear, Counting& counting);
  // Each warp that can run gets a turn.
  Turn turn();
  const CtaWork& work() const { return work_; }
  uint64_t executed() const;  // warp instructions so far

  LaunchStatus status() const { return status_; }
  int64_t linear() const { return linear_; }
  // Ends the launch here: all CTAs that could run poll memory.
  void fail_spinning(int64_t resident);
  // Host memory of one machine for this launch.
  static int64_t bytes(const Job& job);
  const Finding& finding() const { return finding_; }
  const std::string& reason() const { return reason_; }

 private:
  enum class Step { yield, barrier, done, failed };
  void set_specials();
  void fill(Warp& w, int32_t offset, int size, uint64_t value);
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
  bool release_if_complete(int id);
  void release(Warp& w, const Barrier& b);
  bool left_early(const Barrier& b, int id);
  std::string place(int32_t pc) const;
  std::string state_of(const Warp& w) const;
  void split_off(Warp& w, uint32_t mask);
  bool deadlock();
  // Whether a warp lets others run behind this instruction.
  bool gives_way(const Warp& w, const Inst& in) {
    if (in.op == Op::fence) return mixed_ && in.sub != kNoFence && (random() & 1);
    if (w.spins >= spins_ && w.spins % spins_ == 0) return true;
    if (in.pulls && job_.fair) return true;
    return mixed_ && (in.op == Op::atomic || in.ordered) && (random() & 1);
  }
  uint64_t random();
  void shuffle_warps();
  void note_wait(Warp& w, bool again);
  void sleep(Warp& w, const Inst& in, uint32_t mask);
  void end_work();
  void meet_sleepers(uint32_t waiting);
  // An access that may be a poll of another thread's write.
  void note_poll(Warp& w, const Inst& in, uint64_t address, bool changed);

  // host_calls.cpp
  bool host_call(Warp& w, const Inst& in, int lane);
  const std::byte* peek(const Warp& w, int lane, uint64_t address, uint64_t bytes) const;
  std::string text_at(const Warp& w, int lane, uint64_t address) const;
  std::string format_text(const Warp& w, int lane, const std::string& format, uint64_t at) const;

  // matrix_ops.cpp
  Meet matrix(Warp& w, const Inst& in, uint32_t mask);
  bool async_copy(Warp& w, const Inst& in, uint32_t mask);
  bool async_wait(Warp& w, const Inst& in, uint32_t mask);
  bool fetch(Warp& w, const Inst& in, uint32_t mask);
  bool deliver(Warp& w, const AsyncCopy& copy);
  bool copy_pending(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                    const uint64_t* at);
  std::string pending_place(uint64_t at, uint64_t bytes) const;
  void forget_copies();
  // cta_checks.cpp
  bool follow(Warp& w, const Inst& in, uint32_t mask);
  bool check_shared(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                    const uint64_t* at);
  bool check_global(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                    const uint64_t* at, const Buffer* b);
  bool check_lanes(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at,
                   const std::byte* zero, Space space, const Buffer* b);
  void note_defined(Warp& w, const Inst& in, uint32_t mask, uint32_t lanes, const AddressSummary& s,
                    const uint64_t* at, uint8_t* state, size_t* left, const Origin& origin);
  bool check_settled(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at,
                     BufferShadow& shadow, const Buffer* b);
  bool stored_defined(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at, const Buffer* b);
  bool shared_race(Warp& w, const Inst& in, uint32_t bad, const uint64_t* at);
  bool global_race(Warp& w, const Inst& in, uint32_t bad, const uint64_t* at, const Buffer* b);
  bool report_undefined(Warp& w, const Origin& o, const std::string& what, int lane);
  void name_party(int32_t pc, int warp, int lane, const std::array<int64_t, 3>& cta);

  // memory_ops.cpp
  bool access(Warp& w, const Inst& in, uint32_t mask);
  bool parameter(Warp& w, const Inst& in);
  bool access_at(Warp& w, const Inst& in, uint32_t mask, Space space, const AddressSummary& s,
                 uint64_t* at);
  bool transfer_global(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                       const uint64_t* at, const Buffer* b);
  bool mixed(Warp& w, const Inst& in, uint32_t mask, uint64_t* at);
  bool scattered(Warp& w, const Inst& in, uint32_t mask, uint64_t* at);
  bool local(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s, const uint64_t* at);
  void transfer(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s, const uint64_t* at,
                std::byte* zero);
  bool atomics(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at, std::byte* zero);
  size_t index_of(const Buffer* b) const { return size_t(b - job_.memory.buffers.data()); }
  bool fault(Warp& w, const Inst& in, uint32_t mask, Space space, const uint64_t* at);
  bool report(Warp& w, const char* kind, std::string message, int lane);

  Job& job_;
  const Forms& forms_;
  std::unique_ptr<std::byte[], void (*)(void*)> registers_;
  std::vector<std::byte> shared_, local_;
  std::vector<Warp> warps_;
  Barrier barriers_[16];
  std::vector<AsyncCopies> copies_;  // by warp
  std::vector<uint32_t> in_flight_;  // by word of shared memory: copies that are to write it
  bool delivering_ = false;          // such a copy arrives; others may be to write the same
  uint64_t copies_in_flight_ = 0;    // lanes of all of them
  std::unique_ptr<Hazards> hazards_;
  bool races_ = false;              // hazards_ looks for them
  std::optional<Finding> pending_;  // told at the end of the CTA unless a race explains it
  std::vector<uint8_t> turns_;      // warps, in the order of their turns
  bool mixed_ = false;
  uint32_t spins_ = 0;
  uint64_t random_ = 0;
  int alive_warps_ = 0;
  bool all_spin_ = false;
  int64_t block_threads_ = 0, linear_ = 0;
  std::array<int64_t, 3> at_{0, 0, 0};
  const Buffer* last_[16] = {};
  Counting* counting_ = nullptr;
  CtaWork work_;
  Finding finding_;
  std::string reason_;
  LaunchStatus status_ = LaunchStatus::ok;
};

}  // namespace cutegen::ptx
