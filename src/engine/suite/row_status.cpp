// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/row_status.h"

namespace cutegen::engine {

Names<RowStatus> enum_names(RowStatus) {
  static constexpr Name<RowStatus> names[] = {{RowStatus::correct, "correct"},
                                              {RowStatus::no_recipe, "no_recipe"},
                                              {RowStatus::failed, "failed"},
                                              {RowStatus::rejected, "rejected"},
                                              {RowStatus::unsupported, "unsupported"},
                                              {RowStatus::aborted, "aborted"},
                                              {RowStatus::error, "error"},
                                              {RowStatus::interrupted, "interrupted"},
                                              {RowStatus::pending, "pending"}};
  return names;
}

RowStatus row_status(Status status) {
  switch (status) {
    case Status::correct:
      return RowStatus::correct;
    case Status::failed:
      return RowStatus::failed;
    case Status::rejected:
      return RowStatus::rejected;
    case Status::unsupported:
      return RowStatus::unsupported;
    case Status::aborted:
      return RowStatus::aborted;
  }
  CG_ASSERT(false);
}

}  // namespace cutegen::engine
