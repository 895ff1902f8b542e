// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/row_status.h"

#include "core/codec.h"

namespace cutegen::engine {
namespace {

constexpr codec::Names<RowStatus, 9> kNames{{{RowStatus::correct, "correct"},
                                             {RowStatus::no_recipe, "no_recipe"},
                                             {RowStatus::failed, "failed"},
                                             {RowStatus::rejected, "rejected"},
                                             {RowStatus::unsupported, "unsupported"},
                                             {RowStatus::aborted, "aborted"},
                                             {RowStatus::error, "error"},
                                             {RowStatus::interrupted, "interrupted"},
                                             {RowStatus::pending, "pending"}}};

}  // namespace

const char* to_string(RowStatus status) {
  return codec::name_of(kNames, status);
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

Result<RowStatus> read_row_status(ObjectReader& r, const std::string& key) {
  return codec::enum_field(r, key, kNames);
}

}  // namespace cutegen::engine
