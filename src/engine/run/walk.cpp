// SPDX-License-Identifier: Apache-2.0
#include "engine/run/walk.h"

#include <set>

#include "llm/chat_json.h"

namespace cutegen::engine {
namespace {

constexpr size_t kShownAction = 300;  // bytes of an action in a message

bool records_action(EventType type) {
  return type == EventType::asked || type == EventType::evaluation_started ||
         type == EventType::accepted || type == EventType::rejected || type == EventType::finished;
}

// The part of an event's data that a replay must reproduce: everything except the clock.
Json timeless(Json data) {
  if (data.is_object()) data.erase("clock_ms");
  return data;
}

// What an action decides. The reason of a rejection is left out, because its words may change
// between versions.
Json decision_of(EventType type, Json data) {
  if (type == EventType::rejected) data.erase("reason");
  return data;
}

std::string shorten(std::string text) {
  if (text.size() > kShownAction) text = text.substr(0, kShownAction) + "...";
  return text;
}

// The candidate or the role that an event is about.
std::string step_of(const Event& event) {
  for (const char* key : {"candidate", "role"})
    if (auto it = event.data.find(key); it != event.data.end() && it->is_string())
      return it->get<std::string>();
  return {};
}

}  // namespace

tl::unexpected<Error> Walk::diverged(const Event& event, const std::string& recorded,
                                     const std::string& now) {
  divergence_ = Divergence{.event = event.seq,
                           .step = step_of(event),
                           .field = "action",
                           .recorded = shorten(recorded),
                           .now = shorten(now)};
  return user_error("the run diverges at event " + std::to_string(event.seq) + ": recorded " +
                        shorten(recorded) + "; now " + shorten(now),
                    {}, "it was written by another version of cutegen, or its journal was changed");
}

const search::Action* Walk::next() {
  if (open_.empty() && strategy_)
    for (search::Action& action : strategy_->next()) open_.push_back(std::move(action));
  return open_.empty() ? nullptr : &open_.front();
}

Result<void> Walk::check_action(const Event& event) {
  std::string recorded = std::string(to_string(event.type)) + " " + dump_json(timeless(event.data));
  const search::Action* action = next();
  if (!action) return diverged(event, recorded, "no action");
  if (search::event_type(*action) != event.type ||
      canonical_json(decision_of(event.type, search::event_data(*action))) !=
          canonical_json(decision_of(event.type, timeless(event.data))))
    return diverged(event, recorded, search::describe(*action));
  if (const search::Ask* ask = std::get_if<search::Ask>(action)) asked_ = *ask;
  open_.pop_front();
  return {};
}

Result<void> Walk::check_answer(const Event& event) {
  if (!asked_) return diverged(event, "an answer", "no question was asked");
  if (!proposer_) return {};
  CG_TRY(Answer answer, answer_to(*proposer_, Context(), *asked_, view_));
  if (answer.candidate && answer.candidate->id.empty()) answer.candidate->id = view_.next_id();
  CG_TRY(Json now, parse_json(dump_json(answer_data(answer)), "answer"));
  Json recorded = timeless(event.data);
  if (canonical_json(now) == canonical_json(recorded)) return {};
  auto difference = llm::find_difference(recorded, now);
  CG_ASSERT(difference);
  auto error =
      diverged(event, "an answer", "another one (it differs at '" + difference->place + "')");
  divergence_ = Divergence{.event = event.seq,
                           .step = to_string(asked_->role),
                           .field = "answer" + difference->place,
                           .recorded = difference->recorded,
                           .now = difference->now};
  return error;
}

Result<void> Walk::step(const Event& event) {
  if (!strategy_ && event.type != EventType::opened)
    return user_error("the journal does not begin with the event 'opened'",
                      "event " + std::to_string(event.seq));
  if (records_action(event.type)) CG_CHECK(check_action(event));
  if (event.type == EventType::answered) CG_CHECK(check_answer(event));
  if (event.type == EventType::resumed)
    open_.clear();  // the strategy will repeat the unfinished action
  CG_CHECK(view_.apply(event));
  if (event.type == EventType::opened) {
    CG_TRY(strategy_, search::make_strategy(view_.settings.strategy, view_.settings.search));
  } else if (event.type == EventType::task && make_proposer_) {
    CG_TRY(proposer_, make_proposer_(view_));
  }
  strategy_->apply(event);
  return {};
}

}  // namespace cutegen::engine
