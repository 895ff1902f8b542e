// SPDX-License-Identifier: Apache-2.0
// The bytes of copies of the asynchronous proxy: into shared memory, and out of it.
//
// Contract: the copy has passed its checks, and `cta` holds it. put_rows() expects its source in
// memory: `from_shared` is the shared memory of the CTA that started a copy from there.
//
// Example: put_rows(cta, copy, nullptr);
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// The bytes of a load reach shared memory.
void put_rows(CtaState& cta, const BulkCopy& c, const std::byte* from_shared);
// Takes the bytes that lie in the tensor out of shared memory.
void take_rows(const CtaState& cta, BulkCopy& c);
// Stores or reduces the bytes that a copy holds.
void write_rows(const CtaState& cta, const BulkCopy& c);

}  // namespace cutegen::ptx
