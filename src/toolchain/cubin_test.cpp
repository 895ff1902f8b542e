// SPDX-License-Identifier: Apache-2.0
// Reads a handmade cubin, whole and damaged at every byte.
#include "toolchain/cubin.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cutegen::toolchain {
namespace {

using testing::IsEmpty;

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// Header, names, the code of `a` and `b`, and the section table.
std::string cubin() {
  const std::string names("\0.text.a\0.info\0.text.b\0", 23);
  const std::string code = "0123456789abcdef";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shoff = sizeof header + names.size() + code.size();
  auto section = [](uint32_t name, uint64_t offset, uint64_t size) {
    Elf64_Shdr s{};
    s.sh_name = name, s.sh_type = SHT_PROGBITS, s.sh_offset = offset, s.sh_size = size;
    return s;
  };
  std::string file;
  append(file, header);
  file += names + code;
  const uint64_t start = sizeof header + names.size();
  append(file, section(0, sizeof header, names.size()));
  append(file, section(1, start, 6));
  append(file, section(9, start, 16));
  append(file, section(15, start + 6, 10));
  return file;
}

TEST(Cubin, KernelsInTheOrderOfTheFile) {
  std::string file = cubin();
  auto code = code_of(file);
  ASSERT_EQ(code.size(), 2u);
  EXPECT_EQ(code[0].name, "a");
  EXPECT_EQ(code[0].bytes, "012345");
  EXPECT_EQ(code[1].name, "b");
  EXPECT_EQ(code[1].bytes, "6789abcdef");
}

TEST(Cubin, WhatIsNoCubinHasNoCode) {
  EXPECT_THAT(code_of(""), IsEmpty());
  EXPECT_THAT(code_of("#!/bin/sh"), IsEmpty());
  EXPECT_THAT(code_of(std::string(200, '\0')), IsEmpty());
}

// No view leaves the file, wherever it is truncated and whichever byte is damaged.
TEST(Cubin, DamageIsReadInBounds) {
  const std::string whole = cubin();
  auto within = [](const std::string& file) {
    for (const KernelCode& k : code_of(file)) {
      if (k.bytes.empty()) continue;
      EXPECT_GE(k.bytes.data(), file.data());
      EXPECT_LE(k.bytes.data() + k.bytes.size(), file.data() + file.size());
    }
  };
  for (size_t n = 0; n < whole.size(); ++n) {
    within(whole.substr(0, n));
    std::string damaged = whole;
    damaged[n] = '\xff';
    within(damaged);
  }
  EXPECT_EQ(code_of(whole.substr(0, whole.size() - 1)).size(), 1u);  // cuts the last section
}

}  // namespace
}  // namespace cutegen::toolchain
