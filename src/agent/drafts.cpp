// SPDX-License-Identifier: Apache-2.0
#include "agent/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace cutegen::agent {

std::optional<double> Draft::time_ns() const {
  if (!verdict || verdict->status != Status::correct || !verdict->timing) return std::nullopt;
  return verdict->timing->time_ns;
}

Draft& Drafts::keep(KernelProgram program, const std::string& summary) {
  const std::string id = program_id(program);
  for (Draft& draft : drafts_)
    if (program_id(draft.candidate.program) == id) return draft;
  Draft draft;
  draft.name = "d" + std::to_string(drafts_.size() + 1);
  if (subject_) draft.candidate.parent = subject_->id;
  draft.candidate.edit.summary =
      summary.empty() ? "draft " + draft.name + " of the " + to_string(role_) : summary;
  draft.candidate.edit.origin = origin_;
  draft.candidate.program = std::move(program);
  drafts_.push_back(std::move(draft));
  return drafts_.back();
}

const Draft* Drafts::before(const Draft& draft) const {
  for (size_t i = 1; i < drafts_.size(); ++i)
    if (&drafts_[i] == &draft) return &drafts_[i - 1];
  return nullptr;
}

const Draft* Drafts::find(const std::string& name) const {
  auto it =
      std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& d) { return d.name == name; });
  return it == drafts_.end() ? nullptr : &*it;
}

Draft* Drafts::find(const std::string& name) {
  return const_cast<Draft*>(std::as_const(*this).find(name));
}

const Draft* Drafts::fastest() const {
  const Draft* out = nullptr;
  for (const Draft& d : drafts_)
    if (auto time = d.time_ns(); time && (!out || *time < *out->time_ns())) out = &d;
  return out;
}

std::string Drafts::names() const {
  std::vector<std::string> names;
  names.reserve(drafts_.size());
  for (const Draft& d : drafts_) names.push_back(d.name);
  return names.empty() ? "none" : join(names, ", ");
}

std::string Drafts::missing_text(const std::string& name) const {
  return fmt::format("There is no draft '{}'; there are: {}.", sanitize(name, 40), names());
}

}  // namespace cutegen::agent
