// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include "base/json.h"
#include "base/text.h"

namespace cutegen {
namespace {

constexpr size_t kMostShown = 60;

}  // namespace

tl::unexpected<Error> unknown_name(const std::string& name, const std::string& what,
                                   const std::string& where,
                                   const std::vector<std::string>& known) {
  auto near = nearest(name, known);
  std::string list;
  for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
  return user_error("unknown " + what + " '" + sanitize(name, kMostShown) + "'", where,
                    near ? "did you mean '" + *near + "'?" : "one of " + list);
}

}  // namespace cutegen
