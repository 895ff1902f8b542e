// SPDX-License-Identifier: Apache-2.0
#include "device/codec.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace cutegen::device {
namespace {

constexpr size_t kMostItems = 65536;
constexpr size_t kMostText = 16384;

Result<std::string> text(ObjectReader& r, const std::string& key) {
  CG_TRY(std::string value, r.string_or(key, ""));
  return sanitize(value, kMostText);
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string out;
  for (std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
  return out;
}

Result<std::vector<std::byte>> from_hex(const std::string& text) {
  auto digit = [](char c) { return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - '0'; };
  if (text.size() % 2 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return world_error("the bytes of an argument are not hex");
  std::vector<std::byte> out;
  for (size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  return out;
}

// Reads an array field and converts each element with `f`.
template <class T, class F>
Result<std::vector<T>> list(ObjectReader& r, const std::string& key, F f) {
  CG_TRY(Json array, r.array_or_empty(key));
  if (array.size() > kMostItems) return world_error("'" + key + "' has too many entries");
  std::vector<T> out;
  for (const Json& item : array) {
    CG_TRY(T value, f(item, r.place(key)));
    out.push_back(std::move(value));
  }
  return out;
}

Result<int64_t> number_of(const Json& json, const std::string& where) {
  if (!json.is_number_integer()) return world_error("not an integer: " + where);
  return json.get<int64_t>();
}

template <size_t N>
Result<std::array<int64_t, N>> numbers(ObjectReader& r, const std::string& key) {
  CG_TRY(auto values, list<int64_t>(r, key, number_of));
  if (values.size() != N) return world_error(fmt::format("'{}' needs {} numbers", key, N));
  std::array<int64_t, N> out{};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

Result<LaunchArg> arg_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  LaunchArg arg;
  CG_TRY(arg.buffer, r.string_or("buffer", ""));
  CG_TRY(std::string bytes, r.string_or("bytes", ""));
  CG_TRY(arg.bytes, from_hex(bytes));
  CG_CHECK(r.finish());
  return arg;
}

Json step_json(const std::variant<Launch, Fill>& step) {
  if (const auto* fill = std::get_if<Fill>(&step))
    return {{"step", fill->step},
            {"fill", fill->buffer},
            {"value", fmt::format("{}", fill->value)},
            {"dtype", to_string(fill->dtype)}};
  const auto& l = std::get<Launch>(step);
  Json args = Json::array();
  for (const LaunchArg& a : l.args) {
    Json arg = Json::object();
    if (!a.buffer.empty()) arg["buffer"] = a.buffer;
    if (!a.bytes.empty()) arg["bytes"] = hex(a.bytes);
    args.push_back(std::move(arg));
  }
  return {{"step", l.step},
          {"kernel", l.kernel},
          {"module", l.module},
          {"grid", l.grid},
          {"block", l.block},
          {"cluster", l.cluster},
          {"shared_bytes", l.shared_bytes},
          {"cooperative", l.cooperative},
          {"pdl", l.pdl},
          {"registers", l.registers},
          {"args", std::move(args)}};
}

Result<std::variant<Launch, Fill>> step_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  if (r.has("fill")) {
    Fill fill;
    CG_TRY(fill.step, text(r, "step"));
    CG_TRY(fill.buffer, r.string("fill"));
    CG_TRY(std::string value, r.string("value"));  // as text, because JSON has no infinities
    char* end = nullptr;
    fill.value = std::strtod(value.c_str(), &end);
    if (value.empty() || *end) return world_error("a fill has no value");
    CG_TRY(std::string dtype, r.string("dtype"));
    CG_TRY(fill.dtype, dtype_from_name(dtype));
    CG_CHECK(r.finish());
    return fill;
  }
  Launch l;
  CG_TRY(l.step, text(r, "step"));
  CG_TRY(l.kernel, r.string("kernel"));
  CG_TRY(int64_t module, r.integer("module"));
  l.module = static_cast<size_t>(module);
  CG_TRY(l.grid, numbers<3>(r, "grid"));
  CG_TRY(l.block, numbers<3>(r, "block"));
  CG_TRY(l.cluster, numbers<3>(r, "cluster"));
  CG_TRY(l.shared_bytes, r.integer("shared_bytes"));
  CG_TRY(l.cooperative, r.boolean("cooperative"));
  CG_TRY(l.pdl, r.boolean("pdl"));
  CG_TRY(int64_t registers, r.integer("registers"));
  l.registers = static_cast<int>(std::clamp<int64_t>(registers, 0, 65536));
  CG_TRY(l.args, list<LaunchArg>(r, "args", arg_from));
  CG_CHECK(r.finish());
  return l;
}

Json entry_json(const EntryFacts& e) {
  Json params = Json::array();
  for (const ParamFacts& p : e.params) params.push_back({{"size", p.size}, {"align", p.align}});
  return {{"name", e.name},
          {"params", std::move(params)},
          {"max_block", e.max_block},
          {"static_shared_bytes", e.static_shared_bytes}};
}

Result<ParamFacts> param_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CG_TRY(int64_t size, r.integer("size"));
  CG_TRY(int64_t align, r.integer("align"));
  CG_CHECK(r.finish());
  if (size < 0 || align < 0) return world_error("a parameter has a negative size");
  return ParamFacts{static_cast<size_t>(size), static_cast<size_t>(align)};
}

Result<EntryFacts> entry_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  EntryFacts e;
  CG_TRY(e.name, text(r, "name"));
  CG_TRY(e.params, list<ParamFacts>(r, "params", param_from));
  CG_TRY(auto block, numbers<3>(r, "max_block"));
  for (size_t i = 0; i < 3; ++i) e.max_block[i] = static_cast<int>(block[i]);
  CG_TRY(e.static_shared_bytes, r.integer("static_shared_bytes"));
  CG_CHECK(r.finish());
  return e;
}

Result<uint32_t> word_of(const Json& json, const std::string& where) {
  CG_TRY(int64_t value, number_of(json, where));
  return static_cast<uint32_t>(value);
}

Result<double> time_of(const Json& json, const std::string& where) {
  if (!json.is_number() || !(json.get<double>() >= 0)) return world_error("not a time: " + where);
  return json.get<double>();
}

Result<std::map<std::string, double>> counters_from(ObjectReader& r, const char* key = "counters") {
  CG_TRY(Json counters, r.object(key));
  if (counters.size() > 256) return world_error("too many counters");
  ObjectReader c(counters, r.place(key));
  std::map<std::string, double> out;
  for (const auto& [name, value] : counters.items()) {
    CG_TRY(out[sanitize(name, 64)], c.number(name));
  }
  return out;
}

Json counters_json(const std::map<std::string, double>& counters) {
  Json out = Json::object();
  for (const auto& [name, value] : counters) out[name] = value;
  return out;
}

Result<LineProfile> line_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  LineProfile l;
  CG_TRY(int64_t line, r.integer("line"));
  if (line < 0 || line > 10'000'000) return world_error("a line number is out of range");
  l.line = static_cast<int>(line);
  CG_TRY(l.counters, counters_from(r));
  CG_CHECK(r.finish());
  return l;
}

Result<KernelProfile> kernel_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  KernelProfile k;
  CG_TRY(k.kernel, text(r, "kernel"));
  CG_TRY(k.time_ns, r.number("time_ns"));
  CG_TRY(k.bound_by, text(r, "bound_by"));
  CG_TRY(k.sampled_share, r.number("sampled_share"));
  CG_TRY(k.sample_error, r.number("sample_error"));
  CG_TRY(k.limited_by, text(r, "limited_by"));
  CG_TRY(k.counters, counters_from(r));
  CG_TRY(k.lines, list<LineProfile>(r, "lines", line_from));
  CG_CHECK(r.finish());
  return k;
}

Json trace_json(const LaunchTrace& t) {
  Json index = Json::array(), line = Json::array(), runs = Json::array();
  for (const TracedInst& i : t.executed) {
    index.push_back(i.index);
    line.push_back(i.line);
    runs.push_back(i.runs);
  }
  return {{"kernel", t.kernel},
          {"module", t.module},
          {"ctas_total", t.ctas_total},
          {"ctas_run", t.ctas_run},
          {"sample_error", t.sample_error},
          {"longest_cta", t.longest_cta},
          {"flops", t.flops},
          {"loaded", t.loaded},
          {"stored", t.stored},
          {"atomics", t.atomics},
          {"stored_sectors", counters_json(t.stored_sectors)},
          {"index", std::move(index)},
          {"line", std::move(line)},
          {"runs", std::move(runs)}};
}

Result<LaunchTrace> trace_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  LaunchTrace t;
  CG_TRY(t.kernel, text(r, "kernel"));
  CG_TRY(int64_t module, r.integer("module"));
  t.module = static_cast<size_t>(module);
  CG_TRY(t.ctas_total, r.integer("ctas_total"));
  CG_TRY(t.ctas_run, r.integer("ctas_run"));
  for (auto [key, value] : {std::pair{"sample_error", &t.sample_error},
                            {"longest_cta", &t.longest_cta},
                            {"flops", &t.flops},
                            {"loaded", &t.loaded},
                            {"stored", &t.stored}}) {
    CG_TRY(*value, r.number(key));
  }
  CG_TRY(t.atomics, r.boolean("atomics"));
  CG_TRY(t.stored_sectors, counters_from(r, "stored_sectors"));
  CG_TRY(auto index, list<int64_t>(r, "index", number_of));
  CG_TRY(auto line, list<int64_t>(r, "line", number_of));
  CG_TRY(auto runs, list<double>(r, "runs", time_of));
  CG_CHECK(r.finish());
  if (line.size() != index.size() || runs.size() != index.size())
    return world_error("a trace has lists of different lengths");
  for (size_t i = 0; i < index.size(); ++i) t.executed.push_back({index[i], line[i], runs[i]});
  return t;
}

constexpr const char* kOrders[] = {"in_order", "reversed", "mixed"};

Result<RunOrder> order_from(const std::string& name) {
  for (size_t i = 0; i < std::size(kOrders); ++i)
    if (name == kOrders[i]) return static_cast<RunOrder>(i);
  return world_error("unknown order of a run: " + sanitize(name, 40));
}

constexpr const char* kTimeModes[] = {"cold", "warm", "graph", "call"};
constexpr std::array<std::pair<RunReport::Status, const char*>, 4> kStatuses{
    {{RunReport::Status::ok, "ok"},
     {RunReport::Status::finding, "finding"},
     {RunReport::Status::unsupported, "unsupported"},
     {RunReport::Status::out_of_budget, "out_of_budget"}}};

}  // namespace

Json to_json(const PlanSteps& steps) {
  Json out = Json::array();
  for (const auto& step : steps) out.push_back(step_json(step));
  return {{"steps", std::move(out)}};
}

Result<PlanSteps> plan_steps_from_json(const Json& json) {
  ObjectReader r(json, "steps#");
  CG_TRY(PlanSteps steps, (list<std::variant<Launch, Fill>>(r, "steps", step_from)));
  CG_CHECK(r.finish());
  return steps;
}

Json to_json(const ModuleFacts& facts) {
  Json entries = Json::array(), constants = Json::object(), specs = Json::object();
  for (const EntryFacts& e : facts.entries) entries.push_back(entry_json(e));
  for (const auto& [name, value] : facts.constants) constants[name] = value;
  for (const auto& [name, words] : facts.tma_specs) specs[name] = words;
  return {{"entries", std::move(entries)},
          {"constants", std::move(constants)},
          {"tma_specs", std::move(specs)}};
}

Result<ModuleFacts> module_facts_from_json(const Json& json) {
  ObjectReader r(json, "facts#");
  ModuleFacts facts;
  CG_TRY(facts.entries, list<EntryFacts>(r, "entries", entry_from));
  CG_TRY(Json constants, r.object("constants"));
  CG_TRY(Json specs, r.object("tma_specs"));
  if (constants.size() > kMostItems || specs.size() > 64) return world_error("too many constants");
  ObjectReader c(constants, "facts#/constants"), s(specs, "facts#/tma_specs");
  for (const auto& [name, value] : constants.items()) {
    CG_TRY(facts.constants[name], c.integer(name));
  }
  for (const auto& [name, value] : specs.items()) {
    CG_TRY(facts.tma_specs[name], list<uint32_t>(s, name, word_of));
  }
  CG_CHECK(r.finish());
  return facts;
}

Json to_json(const DeviceFacts& f) {
  return {{"name", f.name},
          {"arch", f.arch},
          {"sms", f.sms},
          {"max_threads_per_block", f.max_threads_per_block},
          {"max_shared_bytes", f.max_shared_bytes},
          {"max_grid_x", f.max_grid_x},
          {"max_grid_yz", f.max_grid_yz},
          {"max_threads_per_sm", f.max_threads_per_sm},
          {"max_blocks_per_sm", f.max_blocks_per_sm},
          {"shared_bytes_per_sm", f.shared_bytes_per_sm}};
}

Result<DeviceFacts> device_facts_from_json(const Json& json) {
  ObjectReader r(json, "device#");
  DeviceFacts f;
  CG_TRY(f.name, text(r, "name"));
  CG_TRY(f.arch, text(r, "arch"));
  CG_TRY(f.sms, r.integer("sms"));
  CG_TRY(f.max_threads_per_block, r.integer("max_threads_per_block"));
  CG_TRY(f.max_shared_bytes, r.integer("max_shared_bytes"));
  CG_TRY(f.max_grid_x, r.integer("max_grid_x"));
  CG_TRY(f.max_grid_yz, r.integer("max_grid_yz"));
  CG_TRY(f.max_threads_per_sm, r.integer("max_threads_per_sm"));
  CG_TRY(f.max_blocks_per_sm, r.integer("max_blocks_per_sm"));
  CG_TRY(f.shared_bytes_per_sm, r.integer("shared_bytes_per_sm"));
  CG_CHECK(r.finish());
  return f;
}

Json to_json(const DeviceIdentity& d) {
  return {{"gpu", d.gpu},
          {"uuid", d.uuid},
          {"driver", d.driver},
          {"cuda_version", d.cuda_version},
          {"memory_bytes", d.memory_bytes},
          {"l2_bytes", d.l2_bytes}};
}

Result<DeviceIdentity> device_identity_from_json(const Json& json) {
  ObjectReader r(json, "identity#");
  DeviceIdentity d;
  CG_TRY(d.gpu, text(r, "gpu"));
  CG_TRY(d.uuid, text(r, "uuid"));
  CG_TRY(d.driver, text(r, "driver"));
  CG_TRY(int64_t version, r.integer("cuda_version"));
  d.cuda_version = static_cast<int>(std::clamp<int64_t>(version, 0, 1'000'000));
  CG_TRY(d.memory_bytes, r.integer("memory_bytes"));
  CG_TRY(d.l2_bytes, r.integer("l2_bytes"));
  CG_CHECK(r.finish());
  return d;
}

const char* to_string(BufferContent content) {
  return content == BufferContent::data     ? "data"
         : content == BufferContent::output ? "output"
                                            : "scratch";
}

Result<BufferContent> buffer_content_from(const std::string& name) {
  for (auto c : {BufferContent::data, BufferContent::output, BufferContent::scratch})
    if (name == to_string(c)) return c;
  return world_error("unknown content of a buffer: " + sanitize(name, 40));
}

Json to_json(const RunSettings& s) {
  Json out{{"sample_ctas", s.sample_ctas},
           {"instruction_budget", s.instruction_budget},
           {"threads", s.threads},
           {"checks", s.checks},
           {"sample_most", s.sample_most},
           {"sample_error", s.sample_error},
           {"sample_seed", s.sample_seed},
           {"lines", s.lines},
           {"trace", s.trace},
           {"whole_instructions", s.whole_instructions},
           {"limit_ns", s.limit.count()}};
  if (s.order == RunOrder::in_order) return out;
  out["order"] = kOrders[static_cast<size_t>(s.order)], out["order_seed"] = s.order_seed;
  return out;
}

Result<RunSettings> run_settings_from_json(const Json& json) {
  ObjectReader r(json, "settings#");
  RunSettings s;
  CG_TRY(s.sample_ctas, r.integer("sample_ctas"));
  CG_TRY(int64_t budget, r.integer("instruction_budget"));
  s.instruction_budget = static_cast<uint64_t>(budget);
  CG_TRY(int64_t threads, r.integer("threads"));
  s.threads = static_cast<int>(threads);
  CG_TRY(s.checks, r.boolean("checks"));
  CG_TRY(s.sample_most, r.integer("sample_most"));
  CG_TRY(s.sample_error, r.number("sample_error"));
  CG_TRY(int64_t seed, r.integer("sample_seed"));
  s.sample_seed = static_cast<uint64_t>(seed);
  CG_TRY(s.lines, r.boolean("lines"));
  CG_TRY(s.trace, r.boolean_or("trace", false));
  CG_TRY(int64_t whole, r.integer_or("whole_instructions", 0));
  s.whole_instructions = static_cast<uint64_t>(std::max<int64_t>(whole, 0));
  CG_TRY(int64_t limit, r.integer("limit_ns"));
  s.limit = Nanoseconds(limit);
  if (r.has("order")) {
    CG_TRY(std::string order, r.string("order"));
    CG_TRY(s.order, order_from(order));
    CG_TRY(int64_t drawn, r.integer("order_seed"));
    s.order_seed = static_cast<uint64_t>(drawn);
  }
  CG_CHECK(r.finish());
  return s;
}

Json to_json(const TimeRequest& t) {
  return {{"mode", kTimeModes[static_cast<size_t>(t.mode)]},
          {"steps", to_json(t.steps)},
          {"against", to_json(t.against)},
          {"paired", t.paired},
          {"control", t.control},
          {"watch", t.watch},
          {"samples", t.samples},
          {"seed", t.seed},
          {"limit_ns", t.limit.count()}};
}

Result<TimeRequest> time_request_from_json(const Json& json) {
  ObjectReader r(json, "time#");
  TimeRequest t;
  CG_TRY(std::string mode, r.string("mode"));
  auto at = std::find(std::begin(kTimeModes), std::end(kTimeModes), mode);
  if (at == std::end(kTimeModes))
    return world_error("unknown way of timing: " + sanitize(mode, 40));
  t.mode = static_cast<TimeMode>(at - std::begin(kTimeModes));
  CG_TRY(Json steps, r.object("steps"));
  CG_TRY(t.steps, plan_steps_from_json(steps));
  CG_TRY(Json against, r.object("against"));
  CG_TRY(t.against, plan_steps_from_json(against));
  CG_TRY(t.paired, r.boolean("paired"));
  CG_TRY(t.control, r.boolean("control"));
  CG_TRY(t.watch, r.boolean("watch"));
  CG_TRY(int64_t samples, r.integer("samples"));
  t.samples = static_cast<int>(std::clamp<int64_t>(samples, 0, 10'000));
  CG_TRY(int64_t seed, r.integer("seed"));
  t.seed = static_cast<uint64_t>(seed);
  CG_TRY(int64_t limit, r.integer("limit_ns"));
  t.limit = Nanoseconds(limit);
  CG_CHECK(r.finish());
  return t;
}

Json to_json(const RunReport& report) {
  Json kernels = Json::array();
  for (const KernelProfile& k : report.kernels) {
    Json lines = Json::array();
    for (const LineProfile& l : k.lines)
      lines.push_back({{"line", l.line}, {"counters", counters_json(l.counters)}});
    kernels.push_back({{"kernel", k.kernel},
                       {"time_ns", k.time_ns},
                       {"bound_by", k.bound_by},
                       {"sampled_share", k.sampled_share},
                       {"sample_error", k.sample_error},
                       {"limited_by", k.limited_by},
                       {"counters", counters_json(k.counters)},
                       {"lines", std::move(lines)}});
  }
  const char* status = "";
  for (const auto& [value, name] : kStatuses)
    if (value == report.status) status = name;
  Json traces = Json::array();
  for (const LaunchTrace& t : report.traces) traces.push_back(trace_json(t));
  return {{"status", status},
          {"traces", std::move(traces)},
          {"message", report.message},
          {"detail", report.detail},
          {"kernels", std::move(kernels)},
          {"samples_ns", report.samples_ns},
          {"against_ns", report.against_ns},
          {"state", counters_json(report.state)},
          {"device_lost", report.device_lost}};
}

Result<RunReport> run_report_from_json(const Json& json) {
  ObjectReader r(json, "report#");
  RunReport report;
  CG_TRY(std::string status, r.string("status"));
  bool known = false;
  for (const auto& [value, name] : kStatuses) {
    if (status != name) continue;
    report.status = value;
    known = true;
  }
  if (!known) return world_error("the runner reports an unknown status");
  CG_TRY(report.message, text(r, "message"));
  CG_TRY(report.detail, text(r, "detail"));
  CG_TRY(report.kernels, list<KernelProfile>(r, "kernels", kernel_from));
  if (r.has("traces")) {
    CG_TRY(report.traces, list<LaunchTrace>(r, "traces", trace_from));
  }
  CG_TRY(report.samples_ns, list<double>(r, "samples_ns", time_of));
  CG_TRY(report.against_ns, list<double>(r, "against_ns", time_of));
  CG_TRY(report.state, counters_from(r, "state"));
  CG_TRY(report.device_lost, r.boolean("device_lost"));
  CG_CHECK(r.finish());
  return report;
}

}  // namespace cutegen::device
