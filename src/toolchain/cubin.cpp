// SPDX-License-Identifier: Apache-2.0
#include "toolchain/cubin.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace cutegen::toolchain {
namespace {

constexpr std::string_view kCodePrefix = ".text.";
constexpr uint32_t kNoBits = SHT_NOBITS;

template <class T>
std::optional<T> read_at(std::string_view file, uint64_t at) {
  if (at > file.size() || file.size() - at < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, file.data() + at, sizeof(T));
  return out;
}

std::string_view bytes_of(std::string_view file, const Elf64_Shdr& section) {
  if (section.sh_type == kNoBits || section.sh_offset > file.size() ||
      file.size() - section.sh_offset < section.sh_size)
    return {};
  return file.substr(section.sh_offset, section.sh_size);
}

}  // namespace

std::vector<KernelCode> code_of(std::string_view cubin) {
  std::vector<KernelCode> out;
  auto header = read_at<Elf64_Ehdr>(cubin, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return out;
  auto section = [&](uint64_t i) {
    return read_at<Elf64_Shdr>(cubin, header->e_shoff + i * sizeof(Elf64_Shdr));
  };
  auto strings = section(header->e_shstrndx);
  std::string_view names = strings ? bytes_of(cubin, *strings) : std::string_view();
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    auto s = section(i);
    if (!s || s->sh_name >= names.size()) continue;
    std::string_view name = names.substr(s->sh_name);
    name = name.substr(0, name.find('\0'));
    if (name.starts_with(kCodePrefix))
      out.push_back(
          {.name = std::string(name.substr(kCodePrefix.size())), .bytes = bytes_of(cubin, *s)});
  }
  return out;
}

}  // namespace cutegen::toolchain
