// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/proposer.h"

namespace cutegen::engine {

Json answer_data(const Answer& answer) {
  Json out;
  if (answer.candidate)
    out = {{"outcome", to_string(search::Outcome::proposed)},
           {"candidate", to_json(*answer.candidate)}};
  else if (!answer.advice.empty())
    out = {{"outcome", to_string(search::Outcome::advised)}, {"advice", answer.advice}};
  else
    out = {{"outcome",
            to_string(answer.unusable ? search::Outcome::unusable : search::Outcome::nothing)},
           {"reason", answer.reason}};
  if (!answer.reasks.empty()) out["reasks"] = answer.reasks;
  return out;
}

}  // namespace cutegen::engine
