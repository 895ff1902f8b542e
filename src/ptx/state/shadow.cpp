// SPDX-License-Identifier: Apache-2.0
#include "ptx/state/shadow.h"

#include <sys/mman.h>

namespace cutegen::ptx {

template <class T>
bool Pages<T>::grow(size_t size) {
  if (size <= size_) return true;
  release();
  void* p = mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  at_ = static_cast<T*>(p), size_ = size;
  return true;
}

template <class T>
void Pages<T>::release() {
  if (at_) munmap(at_, size_ * sizeof(T));
  at_ = nullptr, size_ = 0;
}

template class Pages<uint32_t>;
template class Pages<uint8_t>;

}  // namespace cutegen::ptx
