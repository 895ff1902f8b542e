// SPDX-License-Identifier: Apache-2.0
#include "eval/correctness.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/arena.h"
#include "eval/feedback.h"
#include "eval/gpu_slot.h"
#include "eval/official.h"

namespace cutegen {
namespace {

// Warp instructions of one launch. Test shapes are small: an honest program stays far below.
constexpr uint64_t kInstructionBudget = 60'000'000;
constexpr auto kRunLimit = std::chrono::seconds(60);
constexpr auto kGpuLimit = std::chrono::seconds(2);  // of one launch on a GPU

class Checker {
 public:
  Checker(const Context& ctx, const Services& services, const Task& task, const Prepared& prepared,
          CorrectnessRecord& record)
      : ctx_(ctx), services_(services), task_(task), prepared_(prepared), record_(record) {}

  // One set, once; `fill` decides what unwritten memory holds.
  Result<RungEnd> run(const PreparedShape& shape, const InputSet& set, Arena::Fill fill) {
    if (prepared_.has_globals()) CG_CHECK(reload(ctx_, services_, prepared_));
    CG_TRY(Arena arena, Arena::make(items_of(shape, set), fill));
    CG_TRY(RunnerOutcome outcome, run_in(arena, shape, fill));
    if (outcome.kind != RunnerOutcome::Kind::reported) {
      CG_TRY(arena, Arena::make(items_of(shape, set), fill));
      CG_TRY(outcome, run_in(arena, shape, fill));  // once more, alone in a fresh runner
    }
    RungEnd reported = end_of(outcome, shape.shape->name, is_cuda(services_.device.name));
    if (!reported.passed) return reported;
    if (auto damage = arena.findings(); !damage.empty())
      return rung_failed(damage[0], fmt::format("{}", fmt::join(damage, "\n")));
    return compare(shape, set, arena);
  }

 private:
  static std::vector<ArenaItem> items_of(const PreparedShape& shape, const InputSet& set) {
    std::vector<ArenaItem> out;
    for (const TensorSlot& slot : set.inputs)
      out.push_back({ArenaItem::Kind::input, slot.name, slot.bytes, set.bytes_of(slot)});
    for (const Expected& e : set.outputs)
      out.push_back(
          {ArenaItem::Kind::output, e.spec.name, e.truth.size() * size_of(e.spec.dtype), {}});
    for (const ScratchBuffer& s : shape.plan.scratch)
      out.push_back({s.zero ? ArenaItem::Kind::zeroed : ArenaItem::Kind::scratch,
                     s.name,
                     static_cast<size_t>(s.bytes),
                     {}});
    return out;
  }

  Result<RunnerOutcome> run_in(const Arena& arena, const PreparedShape& shape, Arena::Fill fill) {
    RunRequest request;
    request.buffers = arena.buffers();
    request.memory = arena.memory();
    request.steps = shape.all_steps();
    request.settings.instruction_budget =
        kInstructionBudget + static_cast<uint64_t>(shape.shape->flops.value / 4);
    request.settings.threads = services_.threads;
    // the run with plausible numbers in unwritten memory repeats one that was checked
    request.settings.checks = fill == Arena::Fill::nan;
    request.settings.limit = kGpuLimit;
    request.limit = kRunLimit;
    std::optional<GpuSlot> slot;
    if (is_cuda(services_.device.name)) {
      CG_TRY(slot, GpuSlot::share(ctx_, services_.identity.uuid));
    }
    return services_.runner->run(ctx_, request);
  }

  RungEnd compare(const PreparedShape& shape, const InputSet& set, const Arena& arena) {
    std::vector<Mismatch> mismatches;
    for (const Expected& e : set.outputs) {
      auto bytes = arena.bytes_of(e.spec.name);
      Judgement j = judge(e, bytes, &arena.poison());
      if (set.family == "made") count_compat(e, bytes), note_errors(e, bytes);
      if (j.wrong)
        mismatches.push_back(describe_mismatch(j, e.spec, shape.shape->name, set.family));
    }
    for (const std::string& note : set.notes)
      if (std::find(record_.marks.begin(), record_.marks.end(), note) == record_.marks.end())
        record_.marks.push_back(note);
    return mismatches.empty() ? rung_passed() : end_of_mismatches(std::move(mismatches));
  }

  void count_compat(const Expected& e, std::span<const std::byte> bytes) {
    double tolerance = compat_tolerance(task_.math_mode);
    if (!record_.compat) record_.compat = Compat{fmt::format("allclose {:.0e}", tolerance), 0, 0};
    record_.compat->elements += static_cast<int64_t>(e.truth.size());
    record_.compat->wrong += count_not_close(e, bytes, tolerance);
  }

  void note_errors(const Expected& e, std::span<const std::byte> bytes) {
    if (!is_floating(e.spec.dtype)) return;
    const Errors found = largest_errors(e, bytes);
    if (!record_.accuracy) record_.accuracy.emplace();
    Accuracy& a = *record_.accuracy;
    a.elements += static_cast<int64_t>(e.truth.size());
    a.error = std::max(a.error, found.own);
    a.native_error = std::max(a.native_error, found.native);
    a.largest = std::max(a.largest, found.largest);
    a.share = std::max(a.share, found.share);
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const Prepared& prepared_;
  CorrectnessRecord& record_;
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
  const RunReport& report = outcome.report;
  const std::string on = fmt::format("{} (shape {})", report.message, shape);
  switch (report.status) {
    case RunReport::Status::ok:
      return rung_passed();
    case RunReport::Status::finding:
      return rung_failed(on, report.detail);
    case RunReport::Status::unsupported:
      return rung_ended(Status::unsupported, on, report.detail);
    case RunReport::Status::out_of_budget:
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

Result<RungEnd> check_correctness(const Context& ctx, const Services& services, const Task& task,
                                  const Prepared& prepared, const std::string& program_id,
                                  CorrectnessRecord& record, const Progress& progress) {
  Checker checker(ctx, services, task, prepared, record);
  std::vector<const PreparedShape*> shapes;
  for (const PreparedShape& s : prepared.shapes())
    if (is_test_shape(*s.shape)) shapes.push_back(&s);
  // The official shape, where it is small enough to be among them, comes last: others fail sooner.
  std::stable_partition(shapes.begin(), shapes.end(), [](const PreparedShape* s) {
    return s->shape->kind != ShapeKind::official;
  });
  size_t done = 0, total = shapes.size() * services.families.size();
  for (const PreparedShape* shape : shapes) {
    for (const std::string& family : services.families) {
      progress(fmt::format("correctness {}/{}", ++done, total));
      CG_TRY(SetPtr set, services.pool->draw(ctx, *shape->shape, family, program_id));
      CG_TRY(RungEnd end, checker.run(*shape, *set, Arena::Fill::nan));
      ++record.sets_judged;
      bool again = family == services.families.front();
      if (end.passed && again) {
        CG_TRY(end, checker.run(*shape, *set, Arena::Fill::plausible));
        if (!end.passed && !end.mismatches.empty())
          end.detail +=
              "The same inputs gave a right answer before: the result depends on memory "
              "that nobody wrote.\n";
      }
      if (!end.passed) return end;
    }
  }
  const int before = record.sets_judged;
  CG_TRY(RungEnd official,
         check_official(ctx, services, task, prepared, program_id, record, progress));
  if (!official.passed) return official;
  const size_t count = shapes.size() + (record.sets_judged > before ? 1 : 0);
  return rung_passed(
      fmt::format("{} sets on {} shape{}", record.sets_judged, count, count == 1 ? "" : "s"));
}

}  // namespace cutegen
