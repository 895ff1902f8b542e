// SPDX-License-Identifier: Apache-2.0
#include "engine/exchange/import_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/words.h"
#include "engine/exchange/batch_entry.h"
#include "engine/record/end_data.h"
#include "engine/run/out_folder.h"
#include "gpu/spec.h"
#include "search/machine.h"

namespace cutegen::engine {
namespace {

// Figures are comparable only if their keys are equal.
std::string device_key(const Verdict& v) {
  return one_line(v.gpu.empty() ? v.device : fmt::format("{} (driver {})", v.gpu, v.driver), 120);
}

// Returns "h200" for sim:h200 and for an NVIDIA H200. A GPU that no file describes keeps its name.
std::string gpu_model(const std::string& device, const std::string& product) {
  if (product.empty()) return device.substr(device.find(':') + 1);
  auto gpu = gpu_of_product(product);
  return gpu ? gpu->id : product;
}

Origin origin_of(const Verdict& v) {
  return v.timing ? v.timing->origin : Origin::skipped;
}

void relabel(Verdict& v) {
  if (v.timing) v.timing->origin = Origin::imported;
  if (!v.profile) return;
  for (KernelProfile& k : v.profile->kernels) {
    k.origin = k.diagnosis.origin = Origin::imported;
    for (ProfileRemark& remark : k.remarks) remark.origin = Origin::imported;
  }
}

using BuildIds = std::set<std::string>;

BuildIds ids_of(const Verdict& v) {
  return {v.build_ids.begin(), v.build_ids.end()};
}

class Importer {
 public:
  Importer(const Parts& parts, const Context& ctx, store::RunJournal& journal, RunView view,
           RunObserver& observer)
      : parts_(parts), ctx_(ctx), journal_(journal), view_(std::move(view)), observer_(observer) {}

  // Adds the incumbent's own figures first, because the others are compared with them. Then adds
  // the others by time.
  Result<std::vector<ImportRow>> run(std::vector<BatchEntry> entries) {
    const RunStep* best = view_.incumbent();
    const std::string first = best ? program_id(best->candidate.program) : "";
    auto rank = [&](const BatchEntry& e) {
      const double time = e.verdict.timing ? e.verdict.timing->time_ns : 1e300;
      return std::make_tuple(e.verdict.program_id != first, time, e.name);
    };
    std::sort(entries.begin(), entries.end(),
              [&](const BatchEntry& a, const BatchEntry& b) { return rank(a) < rank(b); });
    std::vector<ImportRow> rows;
    for (BatchEntry& entry : entries) {
      CG_CHECK(ctx_.check("importing"));
      CG_TRY(ImportRow row, add(std::move(entry)));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const RunView& view() const { return view_; }

 private:
  Result<ImportRow> add(BatchEntry entry) {
    ImportRow row{
        .entry = entry.name, .verdict = entry.verdict.status, .device = device_key(entry.verdict)};
    if (const RunStep* known = imported_before(entry.sha256)) {
      row.state = ImportRow::State::known, row.candidate = known->candidate.id;
      return row;
    }
    if (std::string why = refusal(entry.verdict); !why.empty()) {
      row.state = ImportRow::State::refused, row.detail = why;
      return row;
    }
    CG_TRY(RunStep step, step_of(std::move(entry)));
    Json data = imported_data(step);
    data["clock_ms"] = view_.clock_ms;
    CG_TRY(Event event, journal_.append(EventType::imported, data));
    CG_CHECK(view_.apply(event));
    observer_.on_event(event);
    row.candidate = step.candidate.id, row.time_ns = step.time_ns(), row.detail = step.reason;
    row.best = step.decision == Decision::accepted;
    return row;
  }

  const RunStep* imported_before(const std::string& sha256) const {
    for (const RunStep& step : view_.steps)
      if (step.imported && step.imported->entry_sha256 == sha256) return &step;
    return nullptr;
  }

  std::string refusal(const Verdict& v) const {
    if (v.task_id != view_.task->task.id)
      return "it was judged for another task, or for another version of this task file";
    if (v.timing && !(v.timing->time_ns > 0)) return "its time is not valid";
    if (v.status == Status::aborted)
      return "the evaluator on the other machine failed, which says nothing about the program: " +
             v.feedback.headline;
    return {};
  }

  // This run's own step with the program, if there is one.
  const RunStep* own(const std::string& program) const {
    for (const RunStep& step : view_.steps)
      if (!step.imported && program_id(step.candidate.program) == program) return &step;
    return nullptr;
  }

  Result<RunStep> step_of(BatchEntry entry) {
    RunStep step;
    step.imported = ImportedFrom{.entry = entry.name,
                                 .entry_sha256 = entry.sha256,
                                 .device = device_key(entry.verdict),
                                 .origin = origin_of(entry.verdict)};
    const RunStep* twin = own(entry.verdict.program_id);
    step.candidate.id = view_.next_id();
    if (twin) step.candidate.parent = twin->candidate.id;
    step.candidate.edit.summary =
        twin ? twin->candidate.id + ", judged elsewhere" : "entry " + entry.name;
    step.candidate.edit.origin = "imported";
    step.candidate.program = std::move(entry.program);
    step.verdict = std::move(entry.verdict);
    relabel(*step.verdict);
    CG_TRY(auto no, objection(step, twin));
    if (no)
      step.decision = Decision::rejected, step.reason = sanitize(*no, 600);
    else
      decide(step);
    return step;
  }

  // Why the step cannot become the incumbent, whatever its time.
  Result<std::optional<std::string>> objection(const RunStep& step, const RunStep* twin) {
    const Verdict& v = *step.verdict;
    if (v.status != Status::correct) return std::optional(search::fault_text(v));
    if (!v.timing) return std::optional<std::string>("no time is known");
    const std::string& known = view_.task->gpu;
    const std::string model =
        known.empty() ? gpu_model(view_.settings.evaluator.device.text(), "") : known;
    if (gpu_model(v.device, v.gpu) != model)
      return std::optional(
          fmt::format("its figures come from {}, but this run is for {}", device_key(v), model));
    if (v.policy_version != Verdict().policy_version)
      return std::optional(fmt::format("judged by rules of version {}; this cutegen has version {}",
                                       v.policy_version, Verdict().policy_version));
    auto here = build_ids_here(step, twin);
    if (!here && ctx_.done()) return fail(here.error());
    if (!here) return std::optional("it cannot be built here: " + here.error().message);
    if (*here == ids_of(v)) return std::optional<std::string>();
    return std::optional<std::string>(
        "the build ids differ: the other machine has another compiler, other headers or another "
        "architecture");
  }

  Result<BuildIds> build_ids_here(const RunStep& step, const RunStep* twin) {
    if (twin && twin->verdict && !twin->verdict->build_ids.empty()) return ids_of(*twin->verdict);
    if (!evaluator_.evaluator) {
      CG_TRY(evaluator_, open_task(parts_, ctx_, view_.settings, observer_));
    }
    if (evaluator_.task.task.id != step.verdict->task_id)
      return user_error("the task file has changed since the run began");
    eval::EvaluateRequest request{.program = step.candidate.program, .up_to = Rung::compile};
    CG_TRY(Verdict built, evaluator_.evaluator->evaluate(ctx_, request));
    if (built.status != Status::correct) return user_error(search::fault_text(built));
    return ids_of(built);
  }

  void decide(RunStep& step) const {
    auto end = [&](Decision decision, std::string reason) {
      step.decision = decision, step.reason = std::move(reason);
    };
    const RunStep* best = view_.incumbent();
    if (!best || !best->time_ns())
      return end(Decision::accepted, "the first correct program with a time");
    const bool same = step.verdict->program_id == program_id(best->candidate.program);
    if (device_key(*best->verdict) != device_key(*step.verdict)) {
      if (same)
        return end(Decision::accepted,
                   fmt::format("the best program itself: from now on its figures of {} count",
                               device_key(*step.verdict)));
      return end(Decision::rejected,
                 fmt::format(
                     "not compared: {}, the best program, has no figures from {}; hand it out, too",
                     best->candidate.id, device_key(*step.verdict)));
    }
    if (const int version = best->verdict->policy_version;
        version != step.verdict->policy_version) {
      if (same)
        return end(Decision::accepted,
                   "the best program itself: from now on its figures by the present rules count");
      return end(Decision::rejected,
                 fmt::format("not compared: {}, the best program, was judged by rules of version "
                             "{}; hand it out, too",
                             best->candidate.id, version));
    }
    const Timing &before = *best->verdict->timing, &now = *step.verdict->timing;
    if (same)
      return end(Decision::rejected, "the best program already has figures from this device");
    if (search::is_gain(before, now, view_.settings.search.min_gain))
      return end(Decision::accepted,
                 search::gain_text(before.time_ns, now.time_ns) + ", not timed alternately");
    end(Decision::rejected, search::loss_text(before.time_ns, now.time_ns));
  }

  const Parts& parts_;
  const Context& ctx_;
  store::RunJournal& journal_;
  RunView view_;
  RunObserver& observer_;
  Opened evaluator_;  // started only to build programs that this run never judged
};

Result<void> check_run(const RunView& view, const std::string& id) {
  if (!view.task) return user_error("the run has no task yet", "run " + id, "start it again");
  if (view.finished) return {};
  return user_error("the run is not finished, and its search would not know the imported programs",
                    "run " + id, "finish it first: cutegen resume " + id);
}

}  // namespace

std::string ImportRow::status() const {
  if (state == State::added) return to_string(verdict);
  return state == State::known ? "known" : "refused";
}

size_t Imported::refused() const {
  return size_t(std::count_if(rows.begin(), rows.end(), [](const ImportRow& r) {
    return r.state == ImportRow::State::refused;
  }));
}

Result<Imported> import_verdicts(const Parts& parts, const Context& ctx, store::Store& store,
                                 const std::string& run, const ImportSettings& settings,
                                 RunObserver& observer) {
  CG_TRY(auto journal, store.resume(run));
  CG_TRY(auto events, journal->events());
  CG_TRY(RunView view, view_run(events));
  CG_CHECK(check_run(view, journal->id()));
  if (!view.settings.out.empty()) CG_CHECK(check_out_folder(view.settings.out));
  CG_TRY(auto names, batch_entries(settings.verdicts));
  Imported out{.run = journal->id(), .best = view.best, .rows = {}};
  std::vector<BatchEntry> entries;
  for (const std::string& name : names) {
    auto entry = read_batch_entry(settings.programs, settings.verdicts, name);
    if (entry)
      entries.push_back(std::move(*entry));
    else
      out.rows.push_back(
          {.entry = name, .state = ImportRow::State::refused, .detail = entry.error().text()});
  }
  Importer importer(parts, ctx, *journal, std::move(view), observer);
  CG_TRY(auto rows, importer.run(std::move(entries)));
  out.rows.insert(out.rows.end(), rows.begin(), rows.end());
  const RunView& now = importer.view();
  const bool changed = now.best != out.best;
  out.best = now.best;
  if (const RunStep* best = now.incumbent(); changed && best && !now.settings.out.empty())
    CG_CHECK(
        save_out_folder(now.settings.out, best->candidate, *best->verdict, now.best_certificate()));
  return out;
}

Json to_json(const Imported& imported) {
  Json rows = Json::array();
  for (const ImportRow& r : imported.rows)
    rows.push_back({{"entry", r.entry},
                    {"status", r.status()},
                    {"candidate", r.candidate},
                    {"device", r.device},
                    {"time_ns", optional_json(r.time_ns)},
                    {"best", r.best},
                    {"detail", r.detail}});
  return {{"schema", "cutegen.import.v1"},
          {"run", imported.run},
          {"best", imported.best},
          {"refused", imported.refused()},
          {"entries", std::move(rows)}};
}

std::string to_text(const Imported& imported) {
  std::string out =
      fmt::format("{:<20} {:<12} {:<6} {:>10}  {}\n", "entry", "verdict", "step", "time", "");
  size_t added = 0;
  for (const ImportRow& r : imported.rows) {
    added += r.state == ImportRow::State::added;
    std::string why = one_line(r.detail, 300);
    if (r.best) why = "the best program now: " + why;
    if (!r.device.empty()) {
      if (!why.empty()) why += "; ";
      why += one_line(r.device, 80);
    }
    out += fmt::format("{:<20} {:<12} {:<6} {:>10}  {}\n", one_line(r.entry, 20), r.status(),
                       r.candidate.empty() ? "-" : r.candidate, time_text(r.time_ns), why);
  }
  out += fmt::format("{} of {} entries imported into run {}, {} refused; the best is {}\n", added,
                     imported.rows.size(), imported.run, imported.refused(),
                     imported.best.empty() ? "none" : imported.best);
  return out;
}

}  // namespace cutegen::engine
