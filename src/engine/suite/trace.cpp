// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/trace.h"

#include "base/file.h"
#include "base/text.h"

namespace cutegen::engine {
namespace {

constexpr size_t kMostName = 120;

double micros(Clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

}  // namespace

void Trace::add(const std::string& track, const std::string& name, Clock::time_point from,
                Clock::time_point to, const Json& arguments) {
  std::lock_guard hold(lock_);
  auto [at, fresh] = numbers_.try_emplace(track, tracks_.size());
  if (fresh) tracks_.push_back(track);
  entries_.push_back({.track = at->second,
                      .name = sanitize(name, kMostName),
                      .from = from,
                      .to = to,
                      .arguments = arguments});
}

Json Trace::json() const {
  std::lock_guard hold(lock_);
  Json events = Json::array();
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const Json where{{"ph", "M"}, {"pid", 1}, {"tid", i + 1}};
    Json name = where, order = where;
    name["name"] = "thread_name";
    name["args"] = {{"name", sanitize(tracks_[i], kMostName)}};
    order["name"] = "thread_sort_index";
    order["args"] = {{"sort_index", i}};
    events.push_back(std::move(name));
    events.push_back(std::move(order));
  }
  for (const Entry& e : entries_)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", e.track + 1},
                      {"name", e.name},
                      {"ts", micros(e.from - began_)},
                      {"dur", micros(e.to - e.from)},
                      {"args", e.arguments}});
  return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
}

Result<void> Trace::write(const std::filesystem::path& file) const {
  return write_file(file, dump_json(json()) + "\n");
}

void Trace::Span::next(const std::string& name) {
  if (name == name_) return;
  const auto now = Clock::now();
  if (trace_ && !name_.empty()) trace_->add(track_, name_, from_, now);
  name_ = name;
  from_ = now;
}

void Trace::Span::end() {
  next(std::string());
}

}  // namespace cutegen::engine
