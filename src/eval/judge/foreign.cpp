// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/foreign.h"
#include "eval/api/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/text.h"
#include "core/weighted.h"
#include "eval/diagnosis/feedback.h"
#include "eval/judge/ladder.h"
#include "eval/judge/time_shapes.h"
#include "eval/rungs/correctness.h"
#include "eval/rungs/derive_shapes.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/prepare.h"
#include "eval/runner/arena.h"
#include "eval/runner/gpu_slot.h"
#include "eval/sets/admission.h"
#include "eval/sets/failing_shapes.h"

namespace cutegen::eval {
namespace {

constexpr const char* kNeverCertified =
    "foreign: never certified, since it runs host code in the process that times it";

void add_once(std::vector<std::string>& list, std::string text) {
  text = sanitize(text, 400);
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

bool is_state(const TensorInfo& info) {
  return info.role == TensorRole::parameter || info.role == TensorRole::buffer;
}

// The task's tensors that are in the arena, in the task's order.
torch::ForeignTensors tensors_in(const Arena& arena, const Task& task, const ShapeCase& shape) {
  torch::ForeignTensors out;
  out.blocks.push_back({.descriptor = arena.memory()});
  auto part = [](const TensorInfo& info, const RunBuffer& b) {
    if (info.role == TensorRole::output) return "output";
    return is_state(info) && !b.read_only ? "final" : "value";
  };
  for (const TensorInfo& info : task.tensors)
    for (const RunBuffer& b : arena.buffers())
      if (b.name == info.name)
        out.tensors.push_back({.tensor = {.name = info.name,
                                          .part = part(info, b),
                                          .dtype = info.dtype,
                                          .shape = shape.tensors.at(info.name),
                                          .offset = size_t(b.offset),
                                          .bytes = size_t(b.bytes)},
                               .memory = 0});
  return out;
}

class ForeignJudge {
 public:
  ForeignJudge(const Context& ctx, const Services& services, const Task& task,
               const ForeignRequest& request, const ForeignOpeners& openers,
               const Progress& progress)
      : ctx_(ctx),
        services_(services),
        task_(task),
        request_(request),
        openers_(openers),
        progress_(progress),
        on_gpu_(services.on_gpu()),
        verdict_(begin_verdict(services, task, foreign_id(request.answer))) {
    verdict_.marks.emplace_back(kNeverCertified);
  }

  Result<Verdict> run() {
    const auto start = Clock::now();
    for (Rung rung : {Rung::lint, Rung::compile, Rung::audit})
      skip(rung, "a third-party solution runs as it is");
    bool going = true;
    for (Rung rung : {Rung::load, Rung::correctness, Rung::timing}) {
      if (going && rung <= request_.up_to) {
        CG_TRY(going, climb(rung));
      } else {
        skip(rung, going ? "not asked for" : "an earlier step failed");
      }
    }
    skip(Rung::profile, "a third-party solution has no profile");
    if (verdict_.status == Status::correct)
      verdict_.feedback.headline =
          verdict_.sets_judged ? fmt::format("correct on {} sets, foreign", verdict_.sets_judged)
                               : "no step failed; correctness was not judged";
    if (verdict_.timing)
      verdict_.feedback.headline += ", " + verdict_.rungs[size_t(Rung::timing)].detail;
    if (verdict_.status == Status::correct)
      verdict_.feedback.headline = with_not_compared(verdict_.feedback.headline, verdict_);
    verdict_.elapsed = Clock::now() - start;
    return std::move(verdict_);
  }

 private:
  void skip(Rung rung, const char* why) {
    verdict_.rungs.push_back(
        {.rung = rung, .result = RungResult::skipped, .elapsed = Nanoseconds(0), .detail = why});
  }

  // Returns false if the ladder ends at this rung.
  Result<bool> climb(Rung rung) {
    CG_CHECK(ctx_.check("judging a third-party solution"));
    progress_(to_string(rung));
    const auto start = Clock::now();
    RungReport report{
        .rung = rung, .result = RungResult::passed, .elapsed = Nanoseconds(0), .detail = {}};
    auto end = rung == Rung::load          ? load()
               : rung == Rung::correctness ? correctness()
                                           : time(report.result);
    report.elapsed = Clock::now() - start;
    if (!end) {
      CG_CHECK(ctx_.check("judging a third-party solution"));
      end = rung_ended(Status::aborted, end.error().text());
    }
    if (!end->passed) report.result = RungResult::failed;
    report.detail = sanitize(end->passed ? end->detail : end->headline, 400);
    if (report.result == RungResult::skipped)
      verdict_.skipped.push_back(fmt::format("{}: {}", to_string(rung), report.detail));
    verdict_.rungs.push_back(report);
    if (end->passed) return true;
    verdict_.status = end->status;
    verdict_.feedback.headline = sanitize(end->headline, 400);
    verdict_.feedback.detail = sanitize(end->detail, kMostDetail);
    verdict_.feedback.mismatches = std::move(end->mismatches);
    return false;
  }

  Result<RungEnd> load() {
    CG_CHECK(take_controls());
    CG_TRY(worker_, openers_.answer());
    verdict_.sandbox = weakest({worker_->grade()});
    return load_again();
  }

  // Times the control calls before the solution is loaded. If they fail, the timing rung is skipped
  // and gives the reason.
  Result<void> take_controls() {
    if (!on_gpu_ || request_.up_to < Rung::timing || !services_.official ||
        !services_.official->missing().empty())
      return {};
    progress_("timing control calls");
    auto clean = openers_.answer();
    for (const ShapeCase* shape : timed_shapes(task_)) {
      auto controls = clean ? controls_at(*shape, **clean) : fail(clean.error());
      CG_CHECK(ctx_.check("timing control calls"));
      if (controls)
        controls_[shape] = std::move(*controls);
      else
        no_controls_[shape] = controls.error().text();
    }
    return {};
  }

  Result<std::vector<double>> controls_at(const ShapeCase& shape, torch::ForeignWorker& clean) {
    CG_TRY(torch::ForeignReply told, clean.load(ctx_, task_, control_file(task_, shape)));
    if (!told.ok()) return world_error("the control process: " + end_of(told, {}).headline);
    ForeignCalls calls(ctx_, services_, task_, clean, place(shape));
    return control_calls(ctx_, services_, calls);
  }

  // Ends the solution's process and its child processes first.
  Result<std::vector<double>> controls_again(const ShapeCase& shape) {
    worker_.reset();
    CG_TRY(auto clean, openers_.answer());
    return controls_at(shape, *clean);
  }

  Result<RungEnd> load_again() {
    CG_TRY(torch::ForeignReply told, worker_->load(ctx_, task_, request_.answer));
    gone_ = told.gone();
    return end_of(told, {});
  }

  Result<RungEnd> correctness() {
    services_.pool->pause();
    if (services_.official) services_.official->pause();
    std::vector<const ShapeCase*> shapes = test_shapes(task_);
    std::stable_partition(shapes.begin(), shapes.end(), [](const ShapeCase* s) {
      return is_timed(*s);  // its result decides
    });
    bool official = false;
    std::optional<RungEnd> narrow;
    for (const ShapeCase* shape : shapes) {
      omitted_ = false;
      CG_TRY(RungEnd end, one_shape(*shape));
      if (omitted_) continue;
      const bool decides = is_timed(*shape);
      if (end.passed) ++shapes_;
      if (!end.passed && (decides || end.status == Status::unsupported)) return end;
      official = official || shape->kind == ShapeKind::official;
      if (end.passed) continue;
      if (!narrow) narrow = end;
      verdict_.skipped.push_back(
          sanitize(fmt::format("shape {}: {}", shape->name, end.headline), 400));
      if (gone_ || on_gpu_) break;  // a fault may have broken the solution's process
    }
    if (narrow && on_gpu_) {
      CG_TRY(RungEnd again, load_again());
      if (!again.passed) return again;
    }
    CG_TRY(RungEnd large, large_shapes(official));
    if (!large.passed) return large;
    return summed_up(official, narrow);
  }

  RungEnd summed_up(bool official, const std::optional<RungEnd>& narrow) {
    if (narrow && !official) return *narrow;
    if (narrow)
      add_once(verdict_.marks,
               "this verdict covers fewer shapes than the task has: " + narrow->headline);
    if (verdict_.sets_judged == 0)
      return rung_ended(Status::unsupported, "no shape of this task can be judged here",
                        "use --device cuda:0");
    return rung_passed(fmt::format("{} sets on {} shape{}", verdict_.sets_judged, shapes_,
                                   shapes_ == 1 ? "" : "s"));
  }

  Result<RungEnd> one_shape(const ShapeCase& shape) {
    for (const std::string& family :
         families_for(shape, services_.families, services_.sample_seed)) {
      progress_(fmt::format("correctness: shape {}, {}", shape.name, family));
      CG_TRY(RungEnd end, one_set(shape, family));
      if (!end.passed || omitted_) return end;
    }
    return rung_passed();
  }

  Result<RungEnd> one_set(const ShapeCase& shape, const std::string& family) {
    auto drawn = draw_twice(ctx_, *services_.pool, shape, family, verdict_.program_id);
    if (!drawn && may_omit(shape, drawn.error())) {
      verdict_.skipped.push_back(omitted(shape, family, drawn.error()));
      omitted_ = true;
      return rung_passed();
    }
    CG_TRY(SetPtr set, std::move(drawn));
    std::vector<ArenaItem> state, given;
    for (const torch::TensorSlot& slot : set->inputs) {
      const TensorInfo& info = *task_.find(slot.name);
      const bool written = info.role == TensorRole::input && info.mutated;
      (info.role == TensorRole::input ? given : state)
          .push_back({.kind = written ? ArenaItem::Kind::state : ArenaItem::Kind::input,
                      .name = slot.name,
                      .bytes = slot.bytes,
                      .content = set->bytes_of(slot)});
    }
    for (const Expected& e : set->outputs)
      if (task_.find(e.spec.name)->role != TensorRole::input)
        given.push_back({.kind = ArenaItem::Kind::output,
                         .name = e.spec.name,
                         .bytes = e.truth.size() * size_of(e.spec.dtype)});
    CG_TRY(Arena weights, Arena::make(std::move(state), Arena::Fill::nan));
    CG_TRY(Arena memory, Arena::make(std::move(given), Arena::Fill::nan));
    std::optional<GpuSlot> slot;
    if (on_gpu_) {
      CG_TRY(slot, GpuSlot::share(ctx_, services_.identity.uuid));
    }
    torch::ForeignModel model{.seed = set->model_seed,
                              .on_gpu = false,
                              .warm_up = 0,
                              .state = tensors_in(weights, task_, shape)};
    CG_TRY(torch::ForeignReply told, worker_->make_model(ctx_, task_, shape, model));
    if (told.ok()) {
      note(told, set->notes);
      CG_TRY(told, worker_->run(ctx_, {.tensors = tensors_in(memory, task_, shape)}));
    }
    gone_ = told.gone();
    if (!told.ok()) return end_of(told, shape.name);
    if (auto damage = memory.findings(); !damage.empty())
      return rung_failed(fmt::format("{} (shape {})", damage[0], shape.name),
                         fmt::format("{}", fmt::join(damage, "\n")));
    return compare(shape, *set, memory);
  }

  void note(const torch::ForeignReply& told, const std::vector<std::string>& notes) {
    for (const std::string& n : notes) add_once(verdict_.marks, n);
    if (!told.kept.empty())
      add_once(verdict_.marks, fmt::format("these tensors of ModelNew have no counterpart in the "
                                           "reference and keep the constructor's values: {}",
                                           fmt::join(told.kept, ", ")));
  }

  RungEnd compare(const ShapeCase& shape, const InputSet& set, const Arena& memory) {
    std::vector<Mismatch> mismatches;
    for (const Expected& e : set.outputs) {
      const auto bytes = memory.bytes_of(e.spec.name);
      Judgement j = judge_result(set, e, bytes, &memory.poison());
      if (set.family == family::made)
        count_compat(int64_t(e.truth.size()),
                     count_not_close(e, bytes, compat_tolerance(task_.math_mode)));
      if (!j.passes()) mismatches.push_back(describe_mismatch(j, e.spec, shape.name, set.family));
    }
    ++verdict_.sets_judged;
    return mismatches.empty() ? rung_passed() : end_of_mismatches(std::move(mismatches));
  }

  void count_compat(int64_t elements, int64_t wrong) {
    if (!verdict_.compat)
      verdict_.compat =
          Compat{.rule = fmt::format("allclose {:.0e}", compat_tolerance(task_.math_mode)),
                 .elements = 0,
                 .wrong = 0};
    verdict_.compat->elements += elements;
    verdict_.compat->wrong += wrong;
  }

  // Judges the timed shapes that are too large to be test shapes, if there is a GPU. Sets
  // `official` if the official shape is one of them and was judged.
  Result<RungEnd> large_shapes(bool& official) {
    for (const ShapeCase* shape : timed_shapes(task_)) {
      if (is_test_shape(*shape)) continue;
      CG_TRY(RungEnd end, large_shape(*shape));
      if (!end.passed) return end;
      official = official ||
                 (shape->kind == ShapeKind::official && verdict_.official_not_compared.empty());
    }
    return rung_passed();
  }

  Result<RungEnd> large_shape(const ShapeCase& shape) {
    if (!on_gpu_) return not_compared(shape, "without a GPU, it is too large");
    if (const std::string why = why_not_at_large_shapes(); !why.empty())
      return not_compared(shape, why);
    ForeignCalls calls(ctx_, services_, task_, *worker_, place(shape));
    // All families, even if GPU memory cannot keep a set of each: no other program runs on the
    // sets.
    for (const std::string& family : services_.families) {
      progress_(fmt::format("correctness: {} shape, {}", shape.name, family));
      auto shown = calls.show(family, 0, {});
      if (!shown && shown.error().kind != ErrorKind::unsupported) return fail(shown.error());
      if (!shown) return not_compared(shape, shown.error().text());  // too large for GPU memory
      gone_ = shown->model.gone() || shown->run.gone();
      note(shown->model, shown->notes);
      if (shown->judged) ++verdict_.sets_judged;
      if (shown->judged && family == family::made)
        count_compat(shown->found.elements, shown->found.not_close);
      if (!shown->end.passed) return shown->end;
    }
    ++shapes_;
    return rung_passed();
  }

  // Why this machine cannot compare outputs at large shapes; empty if it can.
  std::string why_not_at_large_shapes() {
    return services_.official ? services_.official->missing()
                              : "no memory for the evaluator's data";
  }

  RungEnd not_compared(const ShapeCase& shape, const std::string& why) {
    add_once(verdict_.marks,
             fmt::format("outputs at {} were not compared: {}", name_of(shape), why));
    const bool official = shape.kind == ShapeKind::official;
    (official ? verdict_.official_not_compared : verdict_.weighted_not_compared[shape.name]) =
        sanitize(why, 400);
    return rung_passed();
  }

  // Call it only after official->missing() returned nothing, because the judge starts in the
  // background.
  ForeignPlace place(const ShapeCase& shape) {
    return {.gpu = services_.official->gpu(),
            .shape = shape,
            .fresh = [this, &shape](const std::string& family) {
              return services_.official->fresh(ctx_, task_, shape, family);
            }};
  }

  Result<RungEnd> time(RungResult& result) {
    std::string why = "timing a third-party solution needs a GPU: --device cuda:0";
    if (on_gpu_) why = why_not_at_large_shapes();
    if (!why.empty()) {
      result = RungResult::skipped;
      return rung_passed(why);
    }
    services_.official->make_room(task_);
    CG_TRY(ShapesTimed timed, time_cases(timed_shapes(task_), [this](const ShapeCase& shape) {
             return time_at(shape);
           }));
    result = timed.outcome.result;
    for (const std::string& m : timed.outcome.marks) add_once(verdict_.marks, m);
    verdict_.timing = timed.outcome.timing;
    return timed.outcome.end;
  }

  Result<TimingOutcome> time_at(const ShapeCase& shape) {
    if (!controls_.contains(&shape)) {
      TimingOutcome out;
      out.result = RungResult::skipped;
      out.end = rung_passed("no control calls: " + no_controls_[&shape]);
      return out;
    }
    if (!worker_) {  // ended by controls_again()
      CG_TRY(worker_, openers_.answer());
      CG_TRY(RungEnd end, load_again());
      if (!end.passed) {
        TimingOutcome out;
        out.end = std::move(end);
        return out;
      }
    }
    ForeignCalls calls(ctx_, services_, task_, *worker_, place(shape));
    return time_foreign(
        ctx_, services_, task_, calls,
        {.before = controls_.at(&shape), .again = [&] { return controls_again(shape); }},
        openers_.baseline, progress_);
  }

  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const ForeignRequest& request_;
  const ForeignOpeners& openers_;
  const Progress& progress_;
  const bool on_gpu_;
  std::unique_ptr<torch::ForeignWorker> worker_;
  std::map<const ShapeCase*, std::vector<double>> controls_;  // ns
  std::map<const ShapeCase*, std::string> no_controls_;       // why there are none
  Verdict verdict_;
  int shapes_ = 0;        // shapes at which the solution passed
  bool gone_ = false;     // the solution's process ended during the last request
  bool omitted_ = false;  // the module fails at the present shape
};

// The solution writes the message. If the message is false, the only effect is a second judgement.
bool faulted(const Verdict& v) {
  return v.status == Status::failed &&
         v.feedback.headline.find("illegal memory access") != std::string::npos;
}

}  // namespace

RungEnd end_of(const torch::ForeignReply& reply, const std::string& shape) {
  if (reply.ok()) return rung_passed();
  std::string what = reply.what;
  if (reply.kind == torch::ForeignReply::Kind::hung) what = "the solution does not end: " + what;
  if (reply.kind == torch::ForeignReply::Kind::died) what = "the solution's process ended: " + what;
  std::vector<std::string> places;
  if (!reply.where.empty()) places.push_back(reply.where);
  if (!shape.empty()) places.push_back("shape " + shape);
  if (!places.empty()) what += fmt::format(" ({})", fmt::join(places, ", "));
  const std::string said = reply.said.empty() ? "" : "Its last output:\n" + reply.said;
  switch (reply.kind) {
    case torch::ForeignReply::Kind::rule:
      return rung_ended(Status::rejected, what, said);
    case torch::ForeignReply::Kind::needs_gpu:
      return rung_ended(Status::unsupported, what, said);
    default:
      return rung_failed(what, said);
  }
}

Result<Verdict> judge_foreign(const Context& ctx, const Services& services, const Task& task,
                              const ForeignRequest& request, const ForeignOpeners& openers,
                              const Progress& progress) {
  CG_TRY(Verdict verdict, ForeignJudge(ctx, services, task, request, openers, progress).run());
  if (!services.on_gpu() || !faulted(verdict)) return verdict;
  // Another process on the GPU may have caused the fault, so try once more.
  progress("it faulted: judging it once more");
  CG_TRY(Verdict again, ForeignJudge(ctx, services, task, request, openers, progress).run());
  add_once(again.marks, "judged twice: a fault of the GPU ended the first attempt (" +
                            verdict.feedback.headline + ")");
  return again;
}

}  // namespace cutegen::eval
