// SPDX-License-Identifier: Apache-2.0
#include "ptx/ops/wgmma_columns.h"

#include <algorithm>
#include <cstring>

namespace cutegen::ptx {

WgmmaColumns& WgmmaColumns::of_thread() {
  static thread_local WgmmaColumns cache;
  return cache;
}

WgmmaColumns::Entry* WgmmaColumns::entry_of(const Key& key) {
  auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.key.descriptor == key.descriptor && e.key.run == key.run && e.key.n == key.n &&
           e.key.mn_major == key.mn_major;
  });
  return it == entries_.end() ? nullptr : &*it;
}

std::byte* WgmmaColumns::current(const Key& key) {
  const Entry* e = entry_of(key);
  return e && e->key.version == key.version ? e->place->converted : nullptr;
}

std::byte* WgmmaColumns::find(const Key& key, const std::byte* b, bool& known) {
  Entry* e = entry_of(key);
  const bool found = e != nullptr;
  if (!found) {
    e = &entries_[next_];
    next_ = (next_ + 1) % kEntries;
    // No initialisation: most products use only a small part.
    if (!e->place) e->place.reset(new Place);
  }
  e->key = key;
  const size_t bytes = kWgmmaSliceBytes * size_t(key.n);
  known = found && std::memcmp(e->place->raw, b, bytes) == 0;
  if (!known) std::memcpy(e->place->raw, b, bytes);
  return e->place->converted;
}

}  // namespace cutegen::ptx
