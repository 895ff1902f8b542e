// SPDX-License-Identifier: Apache-2.0
#include "core/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Audit, BitsOfMatrixInstructions) {
  EXPECT_EQ(mma_bits("HMMA.16816.F32"), 10);
  EXPECT_EQ(mma_bits("HMMA.1688.F32.TF32"), 10);
  EXPECT_EQ(mma_bits("HMMA.16816.F32.BF16"), 7);
  EXPECT_EQ(mma_bits("HGMMA.64x64x16.F32.BF16"), 7);
  EXPECT_EQ(mma_bits("HGMMA.64x64x8.F32.TF32"), 10);
  EXPECT_EQ(mma_bits("DMMA.8x8x4"), 52);
  EXPECT_EQ(mma_bits("IMMA.16832.S8.S8"), 0);
  EXPECT_EQ(mma_bits("QGMMA.64x64x32.F32.E4M3.E4M3"), 3);
  EXPECT_EQ(mma_bits("UTCHMMA"), 10);
  EXPECT_EQ(mma_bits("UTCIMMA"), 0);
}

TEST(Audit, OtherInstructionsAreNoMatrixInstructions) {
  for (const char* opcode : {"HFMA2.MMA", "FFMA", "MMA", "", ".HMMA", "HMMAX.16816"}) {
    EXPECT_FALSE(is_mma(opcode)) << opcode;
    EXPECT_FALSE(mma_bits(opcode)) << opcode;
  }
}

KernelAudit kernel(const std::string& module, int registers, int64_t spilled) {
  KernelAudit k;
  k.module = module;
  k.kernel = "gemm";
  k.registers = registers;
  k.spill_store_bytes = spilled;
  k.spill_load_bytes = 2 * spilled;
  return k;
}

TEST(Audit, SummaryTakesTheWorstBuildOfAKernel) {
  BinaryAudit a;
  a.kernels = {kernel("k.cu|N=1", 40, 0), kernel("k.cu|N=2", 32, 8), kernel("k.cu|N=3", 64, 0)};
  EXPECT_EQ(summary_of(a), "gemm: 32 registers, spills 8 B stored and 16 B loaded a thread");
  a.kernels[1].spill_store_bytes = a.kernels[1].spill_load_bytes = 0;
  EXPECT_EQ(summary_of(a), "gemm: 64 registers, no spills");
  a.kernels[2].code = CodeAudit{};
  a.kernels[2].code->mma["HMMA.16816.F32"] = 8;
  a.kernels[2].code->local_loads = 3;
  a.kernels[2].static_shared_bytes = 128;
  EXPECT_EQ(summary_of(a),
            "gemm: 64 registers, 128 B static shared, no spills, 3 accesses to local memory, 8 "
            "HMMA.16816.F32");
}

TEST(Audit, SummaryIsBounded) {
  BinaryAudit a;
  for (int i = 0; i < 1000; ++i) {
    a.kernels.push_back(kernel("m", i, 0));
    a.kernels.back().kernel = std::string(200, 'k') + std::to_string(i);
  }
  EXPECT_LT(summary_of(a).size(), 700u);
}

TEST(Audit, UnusualReadsAreWrittenWhereThereAreAny) {
  BinaryAudit a;
  EXPECT_FALSE(to_json(a).contains("unusual_reads"));
  a.unusual_reads = {"%gridid", kConstantByAddress};
  auto back = read_json<BinaryAudit>(to_json(a));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->unusual_reads, a.unusual_reads);
}

TEST(Audit, RefusesStrangeNumbers) {
  BinaryAudit a;
  a.kernels = {kernel("k.cu", 40, 0)};
  a.kernels[0].code = CodeAudit{};
  const Json good = to_json(a);
  ASSERT_TRUE(read_json<BinaryAudit>(good));
  auto error = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    auto read = read_json<BinaryAudit>(bad);
    return read ? std::string("accepted") : read.error().text();
  };
  EXPECT_THAT(error("/kernels/0/registers", -1), HasSubstr("-1 is not from 0"));
  EXPECT_THAT(error("/kernels/0/registers", 1 << 30), HasSubstr("is not from 0 to 65536"));
  EXPECT_THAT(error("/kernels/0/code/mma", {{"HMMA", -5}}), HasSubstr("-5 is below 0"));
  EXPECT_THAT(error("/kernels/0/code/calls", "x"), Not(HasSubstr("accepted")));
  EXPECT_THAT(error("/schema", "cutegen.audit.v9"), HasSubstr("cutegen.audit.v1"));
}

}  // namespace
}  // namespace cutegen
