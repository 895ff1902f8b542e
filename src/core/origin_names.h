// SPDX-License-Identifier: Apache-2.0
// Names of origins, for core's JSON codecs. Private to core.
//
// Example: CG_TRY(out.origin, codec::enum_field(r, "origin", codec::kOrigins));
#pragma once

#include "core/codec.h"
#include "core/profile.h"

namespace cutegen::codec {

inline constexpr Names<Origin, 5> kOrigins{{{Origin::measured, "measured"},
                                            {Origin::modelled, "modelled"},
                                            {Origin::cached, "cached"},
                                            {Origin::imported, "imported"},
                                            {Origin::skipped, "skipped"}}};

}  // namespace cutegen::codec
