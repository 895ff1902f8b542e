// SPDX-License-Identifier: Apache-2.0
#include "device/codec.h"

#include <fmt/format.h>

#include <cstdlib>

#include "device/buffers.h"

namespace cutegen {
namespace {

constexpr size_t kMostItems = 65536;
constexpr size_t kMostText = 16384;
constexpr FieldRule kText = field::may_lack + field::shown(kMostText);
constexpr FieldRule kList = field::list(kMostItems);
constexpr FieldRule kCounters = field::most_keys(256) + field::shown(64);

}  // namespace

void fields(Fields& v, LaunchArg& a) {
  v("buffer", a.buffer, field::if_set);
  v("bytes", a.bytes, field::if_set);
}

void fields(Fields& v, Fill& f) {
  std::string value = fmt::format("{}", f.value);  // text, because JSON has no infinities
  v("step", f.step, kText);
  v("fill", f.buffer);
  v("value", value);
  v.by_name("dtype", f.dtype, dtype_from_name);
  if (!v.reading()) return;
  char* end = nullptr;
  f.value = std::strtod(value.c_str(), &end);
  v.check(!value.empty() && !*end, "value", "a fill has no value");
}

void fields(Fields& v, Launch& l) {
  v("step", l.step, kText);
  v("kernel", l.kernel);
  v("module", l.module);
  v("grid", l.grid);
  v("block", l.block);
  v("cluster", l.cluster);
  v("shared_bytes", l.shared_bytes);
  v("cooperative", l.cooperative);
  v("pdl", l.pdl);
  v("registers", l.registers, field::clamped(0, 65536));
  v("code", l.code);
  v("args", l.args, kList);
}

void fields(Fields& v, std::variant<Launch, Fill>& step) {
  if (v.has("fill")) step = Fill{};
  std::visit([&](auto& s) { fields(v, s); }, step);
}

void fields(Fields& v, ParamFacts& p) {
  v("size", p.size, field::at_least(0));
  v("align", p.align, field::at_least(0));
}

void fields(Fields& v, EntryFacts& e) {
  v("name", e.name, kText);
  v("params", e.params, kList);
  v("max_block", e.max_block);
  v("static_shared_bytes", e.static_shared_bytes);
}

void fields(Fields& v, ModuleFacts& facts) {
  v.document("facts#", ErrorKind::world);
  v("entries", facts.entries, kList);
  v("constants", facts.constants, field::most_keys(kMostItems));
  v("tma_specs", facts.tma_specs, field::most_keys(64) + field::most(kMostItems));
}

void fields(Fields& v, DeviceFacts& f) {
  v.document("device#", ErrorKind::world);
  v("name", f.name, kText);
  v("arch", f.arch, kText);
  v("sms", f.sms);
  v("max_threads_per_block", f.max_threads_per_block);
  v("max_shared_bytes", f.max_shared_bytes);
  v("max_grid_x", f.max_grid_x);
  v("max_grid_yz", f.max_grid_yz);
  v("max_threads_per_sm", f.max_threads_per_sm);
  v("max_blocks_per_sm", f.max_blocks_per_sm);
  v("shared_bytes_per_sm", f.shared_bytes_per_sm);
}

namespace device {
namespace {

constexpr int64_t kMostCopies = 64;

// The runner knows counters and lines. The evaluator adds text, remarks and a diagnosis.
void line_form(Fields& v, LineProfile& l) {
  v("line", l.line, field::between(0, 10'000'000));
  v("counters", l.counters, kCounters);
}

void kernel_form(Fields& v, KernelProfile& k) {
  v("kernel", k.kernel, kText);
  v("time_ns", k.time_ns);
  v("bound_by", k.bound_by, kText);
  v("sampled_share", k.sampled_share);
  v("sample_error", k.sample_error);
  v("limited_by", k.limited_by, field::may_lack);
  v("counters", k.counters, kCounters);
  v.as("lines", k.lines, line_form, kList);
}

}  // namespace

void plan_form(Fields& v, PlanSteps& steps) {
  v.document("steps#", ErrorKind::world);
  v("steps", steps, kList);
}

Json to_json(const PlanSteps& steps) {
  return to_json_as(steps, plan_form);
}

Result<PlanSteps> plan_steps_from_json(const Json& json) {
  return read_json_as<PlanSteps>(json, plan_form);
}

void fields(Fields& v, DeviceIdentity& d) {
  v.document("identity#", ErrorKind::world);
  v("gpu", d.gpu, kText);
  v("uuid", d.uuid, kText);
  v("driver", d.driver, kText);
  v("cuda_version", d.cuda_version, field::clamped(0, 1'000'000));
  v("memory_bytes", d.memory_bytes);
  v("l2_bytes", d.l2_bytes);
}

Names<BufferContent> enum_names(BufferContent) {
  static constexpr Name<BufferContent> names[] = {{BufferContent::data, "data"},
                                                  {BufferContent::output, "output"},
                                                  {BufferContent::scratch, "scratch"}};
  return names;
}

Names<RunOrder> enum_names(RunOrder) {
  static constexpr Name<RunOrder> names[] = {{RunOrder::in_order, "in_order"},
                                             {RunOrder::reversed, "reversed"},
                                             {RunOrder::mixed, "mixed"}};
  return names;
}

Names<RunReport::Status> enum_names(RunReport::Status) {
  using Status = RunReport::Status;
  static constexpr Name<Status> names[] = {{Status::ok, "ok"},
                                           {Status::finding, "finding"},
                                           {Status::unsupported, "unsupported"},
                                           {Status::out_of_budget, "out_of_budget"}};
  return names;
}

void fields(Fields& v, RunBuffer& b) {
  v.document("buffers#", ErrorKind::world);
  v("name", b.name);
  v("bytes", b.bytes, field::at_least(0));
  v("read_only", b.read_only);
  v("content", b.content);
  v("offset", b.offset, field::written_if(b.offset >= 0));
  v("pattern_bytes", b.pattern_bytes, field::written_if(b.pattern_bytes != 0));
  v("period_bytes", b.period_bytes, field::written_if(b.period_bytes != 0));
  v("copies", b.copies, field::written_if(b.copies > 1) + field::between(1, kMostCopies));
}

void fields(Fields& v, SharedBuffer& b) {
  v.document("buffers#", ErrorKind::world);
  v("name", b.name);
  v("bytes", b.bytes, field::at_least(0));
  v("read_only", b.read_only);
  v("mapped_bytes", b.mapped_bytes, field::at_least(0));
  v("offset", b.offset, field::at_least(0));
  v("copies", b.copies, field::between(1, kMostCopies));
  v("initial", b.initial, field::if_set);
}

void fields(Fields& v, Probe& p) {
  v.document("probes#");
  v.ignore_unknown();
  v("buffer", p.buffer);
  v("offset", p.offset);
  v("bytes", p.bytes);
  v("at", p.at);
}

void fields(Fields& v, RunSettings& s) {
  v.document("settings#", ErrorKind::world);
  v("sample_ctas", s.sample_ctas);
  v("instruction_budget", s.instruction_budget);
  v("threads", s.threads);
  v("checks", s.checks);
  v("sample_most", s.sample_most);
  v("sample_error", s.sample_error);
  v("sample_seed", s.sample_seed);
  v("lines", s.lines);
  v("trace", s.trace, field::may_lack);
  v("whole_instructions", s.whole_instructions, field::may_lack + field::clamped(0, INT64_MAX));
  v("limit_ns", s.limit);
  v("order", s.order, field::written_if(s.order != RunOrder::in_order));
  if (v.has("order") || s.order != RunOrder::in_order) v("order_seed", s.order_seed);
}

void fields(Fields& v, TimeRequest& t) {
  v.document("time#", ErrorKind::world);
  v("mode", t.mode);
  v.as("steps", t.steps, plan_form);
  v.as("against", t.against, plan_form);
  v("paired", t.paired);
  v("control", t.control);
  v("watch", t.watch);
  v("samples", t.samples, field::clamped(0, 10'000));
  v("seed", t.seed);
  v("limit_ns", t.limit);
}

void fields(Fields& v, LaunchTrace& t) {
  std::vector<int64_t> index, line, column, opcode;
  std::vector<double> runs;
  for (const TracedInst& i : t.executed) {
    index.push_back(i.index), line.push_back(i.line), column.push_back(i.column);
    opcode.push_back(i.opcode), runs.push_back(i.runs);
  }
  v("kernel", t.kernel, kText);
  v("module", t.module);
  v("ctas_total", t.ctas_total);
  v("ctas_run", t.ctas_run);
  v("sample_error", t.sample_error);
  v("stored_error", t.stored_error);
  v("kinds", t.kinds);
  v("kinds_missed", t.kinds_missed);
  v("kinds_known", t.kinds_known);
  v("longest_cta", t.longest_cta);
  v("flops", t.flops);
  v("loaded", t.loaded);
  v("stored", t.stored);
  v("atomics", t.atomics);
  v("stored_sectors", t.stored_sectors, kCounters);
  v("stored_bytes", t.stored_bytes, kCounters);
  v("stored_once", t.stored_once, kCounters);
  v("unreached", t.unreached, kCounters);
  v("unreached_from", t.unreached_from, kCounters);
  v("index", index, kList);
  v("line", line, kList);
  v("column", column, kList);
  v("opcode", opcode, kList);
  v("runs", runs, kList + field::at_least(0));
  const bool same = line.size() == index.size() && column.size() == index.size() &&
                    opcode.size() == index.size() && runs.size() == index.size();
  v.check(same, "index", "a trace has lists of different lengths");
  if (!v.reading() || !same) return;
  for (size_t i = 0; i < index.size(); ++i)
    t.executed.push_back({.index = index[i],
                          .line = line[i],
                          .column = column[i],
                          .opcode = opcode[i],
                          .runs = runs[i]});
}

void fields(Fields& v, RunReport& report) {
  v.document("report#", ErrorKind::world);
  v("status", report.status);
  v("traces", report.traces, kList);
  v("message", report.message, kText);
  v("detail", report.detail, kText);
  v.as("kernels", report.kernels, kernel_form, kList);
  v("samples_ns", report.samples_ns, kList + field::at_least(0));
  v("against_ns", report.against_ns, kList + field::at_least(0));
  v("state", report.state, kCounters);
  v("device_lost", report.device_lost);
}

}  // namespace device
}  // namespace cutegen
