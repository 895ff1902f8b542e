// SPDX-License-Identifier: Apache-2.0
#include "engine/proposer.h"

namespace cutegen {

Json answer_data(const Answer& answer) {
  if (!answer.candidate) return Json{{"outcome", "nothing"}, {"reason", answer.reason}};
  return Json{{"outcome", "proposed"}, {"candidate", to_json(*answer.candidate)}};
}

}  // namespace cutegen
