// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/correctness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <set>

#include "base/text.h"
#include "eval/diagnosis/feedback.h"
#include "eval/diagnosis/public_example.h"
#include "eval/rungs/derive_shapes.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/runner/arena.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/failing_shapes.h"

namespace cutegen::eval {
namespace {

// Warp instructions of one launch. Test shapes are small, so a correct program needs far fewer.
constexpr uint64_t kInstructionBudget = 60'000'000;
constexpr uint64_t kLongBudget = 4 * kInstructionBudget;  // for derived shapes
// In other orders of CTAs and warps, the budget is this many times larger, because threads that
// wait for others may run first and poll.
constexpr uint64_t kMorePolls = 4;
constexpr uint64_t kSimulatedBudget = 20'000'000;  // the GPU must not wait for the simulator
constexpr auto kRunLimit = std::chrono::seconds(60);
constexpr auto kGpuLimit = std::chrono::seconds(2);  // for one launch on a GPU

std::vector<InputValues> inputs_of(const InputSet& set) {
  std::vector<InputValues> out;
  for (const torch::TensorSlot& slot : set.inputs)
    out.push_back(
        {.name = slot.name, .dtype = slot.dtype, .shape = slot.shape, .bytes = set.bytes_of(slot)});
  return out;
}

class Checker {
 public:
  Checker(const Evaluation& e, CorrectnessRecord& record, uint64_t most_instructions = UINT64_MAX)
      : e_(e), record_(record), most_instructions_(most_instructions) {}

  // Runs one set once. `fill` decides what unwritten memory holds.
  Result<RungEnd> run(const PreparedShape& shape, const InputSet& set, Arena::Fill fill,
                      device::RunOrder order = device::RunOrder::in_order) {
    fill_ = fill, order_ = order;
    if (e_.prepared.has_globals()) CG_CHECK(reload(e_.ctx, e_.services, e_.prepared));
    CG_TRY(Arena arena, Arena::make(items_of(shape, set), fill));
    CG_TRY(RunnerOutcome outcome, run_in(arena, shape, fill, order));
    if (outcome.kind != RunnerOutcome::Kind::reported) {
      CG_TRY(arena, Arena::make(items_of(shape, set), fill));
      CG_TRY(outcome, run_in(arena, shape, fill, order));  // tries once more in a new runner
    }
    if (order == device::RunOrder::in_order)
      communicates_ = outcome.report.state.contains("communicates");
    found_ = outcome.kind == RunnerOutcome::Kind::reported &&
             outcome.report.status == device::RunReport::Status::finding;
    RungEnd reported = end_of(outcome, shape.shape->name, e_.services.on_gpu());
    if (!reported.passed) return reported;
    if (auto damage = arena.findings(); !damage.empty())
      return rung_failed(damage[0], fmt::format("{}", fmt::join(damage, "\n")));
    RungEnd end = compare(shape, set, arena);
    if (end.passed) record_.coverage.add(outcome.report, sources_of(e_.prepared), *shape.shape);
    return end;
  }

  // Whether the device reported a finding (a race, an access out of bounds, ...) in the last run,
  // or the result depended on the order of CTAs and warps.
  bool found() const { return found_; }
  bool communicates() const { return communicates_; }

  // Repeats the last run of `other` on inputs that are not secret, and describes the result.
  Result<std::string> show(const Checker& other, const PreparedShape& shape, const InputSet& set) {
    std::string& values = public_values_.emplace();
    CG_TRY(RungEnd end, run(shape, set, other.fill_, other.order_));
    return public_run_text(end.mismatches, values, end.passed ? "" : end.headline);
  }

  // Repeats a set that passed, with other values in unwritten memory. If threads exchange values on
  // the simulator, also runs other orders of CTAs and warps.
  Result<RungEnd> run_again(const PreparedShape& shape, const InputSet& set) {
    constexpr auto kFill = Arena::Fill::plausible;
    const bool orders = communicates_ && !e_.services.on_gpu();
    if (!orders) return blamed_on_memory(run(shape, set, kFill));
    for (device::RunOrder order : {device::RunOrder::reversed, device::RunOrder::mixed}) {
      CG_TRY(RungEnd end, run(shape, set, kFill, order));
      if (end.passed) continue;
      CG_TRY(RungEnd in_order, blamed_on_memory(run(shape, set, kFill)));
      found_ = true;
      return in_order.passed ? blamed_on_order(std::move(end), order) : std::move(in_order);
    }
    return rung_passed();
  }

 private:
  static Result<RungEnd> blamed_on_memory(Result<RungEnd> end) {
    if (end && !end->passed && !end->mismatches.empty())
      end->detail +=
          "The same inputs gave a correct result before, so the result depends on memory that "
          "nothing wrote.\n";
    return end;
  }

  static RungEnd blamed_on_order(RungEnd end, device::RunOrder order) {
    end.headline = fmt::format("correct in one order of CTAs and warps, but not {}: {}",
                               order == device::RunOrder::reversed ? "if the last ones begin first"
                                                                   : "if they run in random order",
                               end.headline);
    end.detail +=
        "\n"
        "The same inputs gave a correct result when CTAs and warps ran in the order of their "
        "index. The result depends on an order that CUDA does not guarantee.\n";
    return end;
  }

  static std::vector<ArenaItem> items_of(const PreparedShape& shape, const InputSet& set) {
    std::vector<ArenaItem> out;
    std::set<std::string> mutated;
    for (const Expected& e : set.outputs) {
      if (set.initial(e.spec.name))
        mutated.insert(e.spec.name);
      else
        out.push_back({.kind = ArenaItem::Kind::output,
                       .name = e.spec.name,
                       .bytes = e.truth.size() * size_of(e.spec.dtype)});
    }
    for (const torch::TensorSlot& slot : set.inputs)
      out.push_back(
          {.kind = mutated.contains(slot.name) ? ArenaItem::Kind::state : ArenaItem::Kind::input,
           .name = slot.name,
           .bytes = slot.bytes,
           .content = set.bytes_of(slot)});
    for (const ScratchBuffer& s : shape.plan.scratch)
      out.push_back({.kind = s.zero ? ArenaItem::Kind::zeroed : ArenaItem::Kind::scratch,
                     .name = s.name,
                     .bytes = size_t(s.bytes)});
    return out;
  }

  Result<RunnerOutcome> run_in(const Arena& arena, const PreparedShape& shape, Arena::Fill fill,
                               device::RunOrder order) {
    RunRequest request;
    request.buffers = arena.buffers();
    request.memory = arena.memory();
    request.steps = shape.all_steps();
    request.settings.instruction_budget =
        std::min(most_instructions_,
                 (shape.shape->kind == ShapeKind::derived ? kLongBudget : kInstructionBudget) +
                     uint64_t(shape.shape->flops.value / 4));
    if (order != device::RunOrder::in_order) request.settings.instruction_budget *= kMorePolls;
    request.settings.threads = e_.services.threads;
    // A run with plausible values repeats a checked run, so it needs no checks.
    request.settings.checks = fill == Arena::Fill::nan;
    request.settings.trace = fill == Arena::Fill::nan && !e_.services.on_gpu();
    request.settings.order = order, request.settings.order_seed = e_.services.sample_seed;
    request.settings.limit = kGpuLimit;
    request.limit = kRunLimit;
    std::optional<GpuSlot> slot;
    if (e_.services.on_gpu()) {
      CG_TRY(slot, GpuSlot::share(e_.ctx, e_.services.identity.uuid));
    }
    return e_.services.runner->run(e_.ctx, request);
  }

  RungEnd compare(const PreparedShape& shape, const InputSet& set, const Arena& arena) {
    std::vector<Mismatch> mismatches;
    for (const Expected& e : set.outputs) {
      auto bytes = arena.bytes_of(e.spec.name);
      Judgement j = judge_result(set, e, bytes, &arena.poison());
      if (set.family == family::made) count_compat(e, bytes), note_errors(e, bytes);
      note_whole(e, j, shape.shape->name, set.family);
      if (j.passes()) continue;
      mismatches.push_back(describe_mismatch(j, e.spec, shape.shape->name, set.family));
      if (public_values_ && public_values_->empty())
        *public_values_ = wrong_values(e_.task, *shape.shape, e, j, bytes, inputs_of(set));
    }
    for (const std::string& note : set.notes)
      if (std::find(record_.marks.begin(), record_.marks.end(), note) == record_.marks.end())
        record_.marks.push_back(note);
    return mismatches.empty() ? rung_passed() : end_of_mismatches(std::move(mismatches));
  }

  void count_compat(const Expected& e, std::span<const std::byte> bytes) {
    double tolerance = compat_tolerance(e_.task.math_mode);
    if (!record_.compat)
      record_.compat =
          Compat{.rule = fmt::format("allclose {:.0e}", tolerance), .elements = 0, .wrong = 0};
    record_.compat->elements += int64_t(e.truth.size());
    record_.compat->wrong += count_not_close(e, bytes, tolerance);
  }

  // Keeps the RMS error and the bias that came nearest to their limits.
  void note_whole(const Expected& e, const Judgement& j, const std::string& shape,
                  const std::string& family) {
    const AggregateLimits& l = j.limits;
    if (!l.apply || !(l.rms > 0)) return;
    if (!record_.accuracy) record_.accuracy.emplace();
    const ErrorGate gate{.output = e.spec.name,
                         .family = family,
                         .shape = shape,
                         .rms = j.rms,
                         .native_rms = l.native_rms,
                         .sequential_rms = l.sequential_rms,
                         .rms_limit = l.rms,
                         .bias = j.bias,
                         .native_bias = l.native_bias,
                         .bias_limit = l.bias};
    auto& rms = record_.accuracy->rms;
    auto& bias = record_.accuracy->bias;
    if (!rms || gate.rms / gate.rms_limit > rms->rms / rms->rms_limit) rms = gate;
    if (!bias || std::abs(gate.bias) / gate.bias_limit > std::abs(bias->bias) / bias->bias_limit)
      bias = gate;
  }

  void note_errors(const Expected& e, std::span<const std::byte> bytes) {
    if (!is_floating(e.spec.dtype)) return;
    const Errors found = largest_errors(e, bytes);
    if (!record_.accuracy) record_.accuracy.emplace();
    Accuracy& a = *record_.accuracy;
    a.elements += int64_t(e.truth.size());
    a.error = std::max(a.error, found.own);
    a.native_error = std::max(a.native_error, found.native);
    a.largest = std::max(a.largest, found.largest);
    a.share = std::max(a.share, found.share);
  }

  const Evaluation e_;
  CorrectnessRecord& record_;
  const uint64_t most_instructions_;                     // limit for one launch
  Arena::Fill fill_ = Arena::Fill::nan;                  // of the last run
  device::RunOrder order_ = device::RunOrder::in_order;  // of the last run
  std::optional<std::string> public_values_;             // values of a set that is not secret
  bool communicates_ = false;                            // threads exchanged values in the last run
  bool found_ = false;
};

// Runs the first set of the first shape on the simulator, and then of the first shape with odd
// sizes, whose tails may read beyond a tensor's end. They run beside the GPU: begin() returns at
// once, and end() waits.
class Simulated {
 public:
  explicit Simulated(const Evaluation& e) : services_(e.services), e_(e.on(services_)) {
    services_.runner = e.services.simulator;
  }

  void begin(const PreparedShape& shape, SetPtr set) {
    const bool odd = shape.shape->kind == ShapeKind::odd;
    if (!services_.simulator || has_odd_ || (!running_.empty() && !odd)) return;
    has_odd_ = odd;
    Running before = running_.empty() ? Running() : running_.back();
    running_.push_back(std::async(std::launch::async, [this, &shape, set = std::move(set), before] {
                         if (before.valid()) before.wait();
                         return check(shape, *set);
                       }).share());
  }

  // Returns the simulator's first finding, or a passed rung. If a set was not checked, `skipped`
  // says why.
  Result<RungEnd> end(CorrectnessRecord& record) {
    RungEnd found = rung_passed();
    std::string last;
    for (const Running& running : running_) {
      const Result<RungEnd>& outcome = running.get();
      CG_CHECK(e_.ctx.check("simulating a set"));
      const RungEnd ended =
          outcome ? *outcome : rung_ended(Status::unsupported, outcome.error().text());
      if (ended.status == Status::failed && found.passed) found = ended;
      if (ended.passed || ended.status != Status::unsupported || ended.headline == last) continue;
      last = ended.headline;
      record.skipped.push_back("checks of the simulator: " + sanitize(last, 200));
    }
    return found;
  }

 private:
  using Running = std::shared_future<Result<RungEnd>>;

  // Returns `failed` only for findings of the simulator's checks.
  Result<RungEnd> check(const PreparedShape& shape, const InputSet& set) {
    services_.device_name = DeviceName::simulator_of(services_.gpu.id);
    CG_TRY(services_.device, device::device_facts(services_.device_name));
    CG_TRY(LoadOutcome loaded, e_.prepared.load_modules(e_.ctx, services_));
    if (!loaded.ok) return rung_ended(Status::unsupported, loaded.error.message);
    CorrectnessRecord unused;
    Checker checker(e_, unused, kSimulatedBudget);
    CG_TRY(RungEnd end, checker.run(shape, set, Arena::Fill::nan));
    if (end.passed && checker.communicates()) {
      CG_TRY(end, checker.run_again(shape, set));
    }
    if (end.passed || checker.found()) return end;
    return rung_ended(Status::unsupported, end.headline);
  }

  Services services_;  // with the simulator as runner
  const Evaluation e_;
  std::vector<Running> running_;
  bool has_odd_ = false;  // whether a shape with odd sizes is among them
};

}  // namespace

Result<void> reload(const Context& ctx, const Services& services, const Prepared& prepared) {
  CG_TRY(LoadOutcome loaded, prepared.load_modules(ctx, services));
  if (!loaded.ok) return world_error("modules do not load again: " + loaded.error.message);
  return {};
}

RungEnd end_of(const RunnerOutcome& outcome, const std::string& shape, bool on_gpu) {
  if (outcome.kind == RunnerOutcome::Kind::died)
    return rung_failed(
        fmt::format("the runner died ({}) while running this program", outcome.text));
  if (outcome.kind == RunnerOutcome::Kind::hung)
    return rung_failed(fmt::format("the program does not end: {}", outcome.text));
  const device::RunReport& report = outcome.report;
  const std::string on = fmt::format("{} (shape {})", report.message, shape);
  switch (report.status) {
    case device::RunReport::Status::ok:
      return rung_passed();
    case device::RunReport::Status::finding:
      return rung_failed(on, report.detail);
    case device::RunReport::Status::unsupported:
      return rung_ended(Status::unsupported, on, report.detail);
    case device::RunReport::Status::out_of_budget:
      return rung_failed(fmt::format("the program does not end within its {} on shape {}: an "
                                     "endless loop?",
                                     on_gpu ? "time" : "instruction budget", shape),
                         report.message + "\n" + report.detail);
  }
  CG_ASSERT(false);
}

RungEnd end_of_mismatches(std::vector<Mismatch> mismatches) {
  RungEnd end = rung_failed(text_of(mismatches[0]));
  for (const Mismatch& m : mismatches) end.detail += details_of(m) + "\n";
  end.mismatches = std::move(mismatches);
  return end;
}

namespace {

// The derived shape with the most elements, which reaches branches that begin at long sizes;
// nullptr if there is none.
const PreparedShape* longest_derived(const std::vector<const PreparedShape*>& shapes) {
  const PreparedShape* out = nullptr;
  for (const PreparedShape* s : shapes)
    if (s->shape->kind == ShapeKind::derived &&
        (!out || elements_of(*s->shape) > elements_of(*out->shape)))
      out = s;
  return out;
}

// Runs a program with wrong results once more, on inputs from a published seed, and adds the values
// of the first wrong elements to the feedback.
RungEnd with_public_values(const Evaluation& e, const PreparedShape& shape,
                           const std::string& family, const Checker& failed, RungEnd end) {
  if (end.mismatches.empty()) return end;
  auto set = e.services.pool->draw_public(e.ctx, *shape.shape, family);
  if (!set) return end;
  CorrectnessRecord unused;
  if (auto text = Checker(e, unused).show(failed, shape, **set))
    end.detail = after_first_mismatch(std::move(end.detail), end.mismatches, *text);
  return end;
}

// Whether the shape comes from a test that a model proposed. It does not replace a test shape.
bool is_proposed(const Evaluation& e, const ShapeCase& shape) {
  return std::ranges::any_of(e.services.proposed, [&](const TestCase& test) {
    return shape.name == "proposed " + test.name;
  });
}

// Checks each test shape on all families, or on two if it is derived or large. If a shape has all
// families or is the longest derived shape, repeats its first set (Checker::run_again()). Omits
// shapes at which the module fails, as long as another shape remains, and removes them from the
// list.
Result<RungEnd> check_test_shapes(const Evaluation& e, std::vector<const PreparedShape*>& shapes,
                                  const std::string& program_id, Checker& checker,
                                  Simulated& simulated, CorrectnessRecord& record) {
  const uint64_t salt = e.services.sample_seed ^ std::hash<std::string>()(program_id);
  size_t done = 0, total = 0;
  for (const PreparedShape* shape : shapes)
    total += families_for(*shape->shape, e.services.families, salt).size();
  const PreparedShape* longest = longest_derived(shapes);
  std::vector<const PreparedShape*> failing;
  std::optional<Error> module_error;
  bool any_whole = false;  // whether the program ran on all families of some shape
  for (const PreparedShape* shape : shapes) {
    const auto families = families_for(*shape->shape, e.services.families, salt);
    const bool all = families.size() == e.services.families.size();
    bool whole = !is_proposed(e, *shape->shape);
    for (const std::string& family : families) {
      e.progress(fmt::format("correctness {}/{}", ++done, total));
      auto drawn = draw_twice(e.ctx, *e.services.pool, *shape->shape, family, program_id);
      if (!drawn && family == family::ranged && drawn.error().kind == ErrorKind::user) {
        record.skipped.push_back("shape " + shape->shape->name + ": " + drawn.error().message);
        continue;
      }
      if (!drawn && may_omit(*shape->shape, drawn.error())) {
        record.skipped.push_back(omitted(*shape->shape, family, drawn.error()));
        module_error = drawn.error();
        failing.push_back(shape);
        whole = false;
        break;
      }
      CG_TRY(SetPtr set, std::move(drawn));
      simulated.begin(*shape, set);
      CG_TRY(RungEnd end, checker.run(*shape, *set, Arena::Fill::nan));
      ++record.sets_judged;
      bool again = (all || shape == longest) && family == families.front();
      if (end.passed && again) {
        CG_TRY(end, checker.run_again(*shape, *set));
      }
      if (!end.passed) return with_public_values(e, *shape, family, checker, std::move(end));
    }
    any_whole = any_whole || whole;
  }
  if (module_error && !any_whole) return fail(*module_error);
  std::erase_if(shapes, [&](auto* s) { return std::ranges::find(failing, s) != failing.end(); });
  return rung_passed();
}

// Whether the program runs at no other shape than the official one.
bool only_at_official(const Prepared& prepared) {
  return std::ranges::all_of(prepared.shapes(), [](const PreparedShape& s) {
    return s.shape->kind == ShapeKind::official;
  });
}

}  // namespace

Result<RungEnd> check_correctness(const Evaluation& e, const std::string& program_id,
                                  CorrectnessRecord& record) {
  std::vector<const PreparedShape*> shapes;
  for (const PreparedShape& s : e.prepared.shapes())
    if (is_test_shape(*s.shape)) shapes.push_back(&s);
  // An official shape that is small enough for a test shape runs last, because a wrong program
  // fails sooner at smaller shapes.
  std::stable_partition(shapes.begin(), shapes.end(), [](const PreparedShape* s) {
    return s->shape->kind != ShapeKind::official;
  });
  Checker checker(e, record);
  Simulated simulated(e);
  CG_TRY(RungEnd end, check_test_shapes(e, shapes, program_id, checker, simulated, record));
  CG_TRY(RungEnd seen, simulated.end(record));
  if (!seen.passed) return seen;  // the simulator's finding also explains wrong values
  if (!end.passed) return end;
  if (only_at_official(e.prepared))
    record.marks.push_back("no other shape than the official one was tested: the task has none");
  if (shapes.empty() && e.services.simulator)
    record.skipped.push_back("checks of the simulator: the task has no test shape");
  const int before = record.sets_judged;
  CG_TRY(RungEnd official, check_on_gpu(e, program_id, record));
  if (!official.passed) return official;
  const size_t count = shapes.size() + (record.sets_judged > before ? 1 : 0);
  return rung_passed(
      fmt::format("{} sets on {} shape{}", record.sets_judged, count, count == 1 ? "" : "s"));
}

}  // namespace cutegen::eval
