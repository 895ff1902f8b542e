// SPDX-License-Identifier: Apache-2.0
#include "engine/report/report_gain.h"

#include <fmt/format.h>

#include "base/units.h"
#include "base/words.h"
#include "engine/report/before_after.h"
#include "engine/report/certificate_text.h"
#include "engine/report/fail_under.h"
#include "engine/report/roofline_chart.h"
#include "engine/report/text_lines.h"
#include "engine/run/complete_best.h"

namespace cutegen::engine {
namespace {

std::string saved_share(double before, double after) {
  if (before <= 0) return {};
  return fmt::format(", {:.0f}% {}", 100 * std::abs(1 - after / before),
                     after <= before ? "saved" : "more");
}

void add_traffic(Entries& e, const BeforeAfter& s) {
  e.add("launches", fmt::format("{} before (modelled: one launch for each operator), {} after{}",
                                counted(s.launches_before, "operator"), s.launches_after,
                                saved_share(double(s.launches_before), double(s.launches_after))));
  std::string bytes = bytes_text(s.bytes_before) + " before (modelled: each operator reads and " +
                      "writes its tensors once)";
  bytes += s.bytes_after
               ? fmt::format(", {} after ({}){}", bytes_text(*s.bytes_after), to_string(s.after),
                             saved_share(s.bytes_before, *s.bytes_after))
               : std::string(", after: not counted (there is no profile)");
  e.add("memory traffic", bytes + "; the least is " + bytes_text(s.bytes_least));
}

void add_accuracy(Entries& e, const RunStep& best) {
  if (!best.verdict || !best.verdict->accuracy) return;
  const Accuracy& a = *best.verdict->accuracy;
  e.add("error",
        fmt::format("at most {:.3g}, the native reference's {:.3g}, on {} values of up to "
                    "{:.3g} (test shapes, the task's own inputs, against float64); {:.1f}% "
                    "of the tolerance",
                    a.error, a.native_error, a.elements, a.largest, 100 * a.share));
  if (const auto& c = best.verdict->compat)
    e.add("public rule", fmt::format("{}: {} of {} values differ", c->rule, c->wrong, c->elements));
}

ReportData gain_box(const RunView& view, const RunStep& best) {
  Entries e;
  if (auto gain = best_gain(view)) e.add("speed-up", to_text(gain));
  if (auto saved = before_after(view)) add_traffic(e, *saved);
  add_accuracy(e, best);
  if (view.profiled && !view.profiled->why.empty()) e.add("profile", "none: " + view.profiled->why);
  ReportData out(Kind::object);
  out.set("entries", e.list());
  return out;
}

ReportData list_of(const std::vector<std::string>& values, size_t from = 0) {
  ReportData out(Kind::list);
  for (size_t i = from; i < values.size(); ++i) out.push_back(text(values[i]));
  return out;
}

ReportData table_of(const CertificateTable& table) {
  ReportData out(Kind::object), rows(Kind::list);
  out.set("title", text(table.title, 80));
  out.set("modes", list_of(table.modes));
  for (const auto& cells : table.rows) {
    ReportData row(Kind::object);
    row.set("name", text(cells.front()));
    row.set("cells", list_of(cells, 1));
    rows.push_back(row);
  }
  out.set("rows", rows);
  return out;
}

ReportData certificate_box(const Certificate& c) {
  const CertificateTable table = certificate_table(c);
  ReportData out(Kind::object), tables(Kind::list);
  out.set("head", text(certificate_head(c)));
  tables.push_back(table_of(table));
  for (const CertificateTable& shape : shape_tables(c)) tables.push_back(table_of(shape));
  out.set("tables", tables);
  if (const std::string note = call_note(table); !note.empty()) out.set("note", text(note));
  out.set("accuracy", list_of(accuracy_notes(c)));
  out.set("missing", list_of(c.missing));
  return out;
}

std::string why_none(const RunView& view) {
  if (view.certified && view.certified->candidate != view.best)
    return "the certificate is of " + view.certified->candidate + ", another program";
  if (view.certified) return view.certified->why;
  std::string why = no_certificate(view.settings);
  if (!why.empty()) return why;
  return view.certifying.empty() ? "this run made no certificate"
                                 : "it was started but is not finished";
}

ReportData imported_rows(const RunView& view) {
  ReportData rows(Kind::list);
  for (const RunStep& step : view.steps) {
    if (!step.imported || !step.verdict) continue;
    const bool correct = step.verdict->status == Status::correct;
    const bool best = step.candidate.id == view.best;
    ReportData row(Kind::object);
    row.set("id", text(step.candidate.id));
    row.set("parent", text(step.candidate.parent.value_or("-")));
    row.set("device", text(step.imported->device));
    row.set("origin", std::string(to_string(step.imported->origin)));
    row.set("time", time_text(step.time_ns()));
    row.set("floor", ratio_text(view.over_floor(step)));
    row.set("result", best ? std::string("the best") : to_string(step.verdict->status));
    row.set("class", std::string(best ? "good" : correct ? "soft" : "bad"));
    row.set("why", text(step.reason, 1000));
    rows.push_back(row);
  }
  return rows;
}

void set_box(ReportData& page, const std::string& name, const std::string& key,
             const ReportData& value) {
  ReportData box(Kind::object);
  box.set(key, value);
  page.set(name, box);
}

}  // namespace

std::string in_turn_text(const RunStep& step) {
  if (step.time_ns())
    for (const PairedRatio& p : step.verdict->timing->paired)
      if (p.against == kIncumbent) return interval_text(p.speedup, p.low, p.high);
  return "-";
}

void add_gain(ReportData& page, const RunView& view) {
  if (ReportData rows = imported_rows(view); rows.is_non_empty_list())
    set_box(page, "imported", "rows", rows);
  const RunStep* best = view.incumbent();
  if (!best) return;
  page.set("gain", gain_box(view, *best));
  if (const Certificate* c = view.best_certificate())
    page.set("certificate", certificate_box(*c));
  else
    set_box(page, "no_certificate", "why", text(why_none(view), 1000));
  const RooflineChart chart = roofline_chart(view);
  if (chart.svg.empty()) return;
  ReportData box(Kind::object);
  box.set("svg", chart.svg);
  box.set("legend", text(chart.legend, 1000));
  page.set("roofline", box);
}

}  // namespace cutegen::engine
