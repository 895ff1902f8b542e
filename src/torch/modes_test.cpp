// SPDX-License-Identifier: Apache-2.0
// The math mode of a task: from its dtypes, its side file, or the user's flag.
#include <gmock/gmock.h>

#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;

// A module with one statement on x ([rows, 64]) and w ([64, 64]).
struct Module {
  std::string body;                 // of forward(self, x, w)
  std::string x = "f", w = "f";     // f, d, h, b, f8: the dtypes
  std::string layer = "nn.ReLU()";  // self.layer
  std::string imports = "";
};

std::string dtype(const std::string& letter) {
  return letter == "d"    ? "float64"
         : letter == "h"  ? "float16"
         : letter == "b"  ? "bfloat16"
         : letter == "f8" ? "float8_e4m3fn"
                          : "float32";
}

std::string mode_source(const Module& m) {
  return "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n" + m.imports +
         "\nrows = 16\n\nclass Model(nn.Module):\n    def __init__(self):\n        "
         "super().__init__()\n"
         "        self.layer = " +
         m.layer + "\n\n    def forward(self, x, w):\n        " + m.body +
         "\n\ndef get_inputs():\n    return [torch.randn(rows, 64).to(torch." + dtype(m.x) +
         "), torch.randn(64, 64).to(torch." + dtype(m.w) +
         ")]\n\ndef get_init_inputs():\n    return []\n";
}

Result<Task> described_module(const Module& m, const std::string& side = {},
                              const AskedAccuracy& asked = {}) {
  TaskFile file("task", mode_source(m), side);
  DescribeOptions options;
  options.shrink = false;
  options.asked = asked;
  return test_worker().describe(Context(), file.path(), options);
}

std::string mode(const Module& m) {
  auto task = described_module(m);
  return task ? mode_text(*task) : task.error().text();
}

AskedAccuracy flag(MathMode mode) {
  AskedAccuracy asked;
  asked.math_mode = mode;
  asked.sources["math_mode"] = "flag --math-mode";
  return asked;
}

AskedAccuracy bounds(std::optional<double> rtol, std::optional<double> atol) {
  AskedAccuracy asked;
  asked.rtol = rtol, asked.atol = atol;
  asked.sources = {{"rtol", "flag --rtol"}, {"atol", "flag --atol"}};
  return asked;
}

TEST(MathModes, FollowTheDtypesOfWhatIsComputed) {
  EXPECT_EQ(mode({"return x @ w"}), "fp32");
  EXPECT_EQ(mode({"return x @ w", "d", "d"}), "fp32");
  EXPECT_EQ(mode({"return x @ w", "b", "b"}), "bf16");
  EXPECT_EQ(mode({"return x @ w", "h", "h"}), "fp16");
  EXPECT_EQ(mode({"return (x @ w).float()", "b", "b"}), "bf16");
  EXPECT_EQ(mode({"return x.to(torch.bfloat16) @ w", "f8", "b"}), "bf16");
}

TEST(MathModes, ConversionsAloneDoNotCount) {
  EXPECT_EQ(mode({"return x.float() @ w", "b"}), "fp32");
  EXPECT_EQ(mode({"return F.softmax(x, -1, dtype=torch.float32)", "b"}), "fp32");
  EXPECT_EQ(mode({"return x.float().softmax(-1).to(torch.bfloat16)", "b"}), "fp32");  // only stored
  EXPECT_EQ(mode({"return (x * 2).to(torch.bfloat16).float() @ w"}), "bf16");  // computed in bf16
  EXPECT_EQ(mode({"return (x * 2).to(torch.bfloat16).float()"}), "bf16");      // in the output
  EXPECT_EQ(mode({"return torch.relu(x).float() @ w", "b"}), "fp32");          // relu is exact
  EXPECT_EQ(mode({"return x.to(torch.bfloat16)"}), "fp32");
  EXPECT_EQ(mode({"return x.t().contiguous()", "b"}), "bf16");
  EXPECT_EQ(mode({"return x.argmax(-1)", "b"}), "bf16");
}

// On meta tensors PyTorch decomposes fused functions into float32 calls; GPUs run them in their
// dtype.
TEST(MathModes, FusedFunctionsKeepTheirDtype) {
  EXPECT_EQ(mode({"return self.layer(x)", "b", "f", "nn.LayerNorm(64).bfloat16()"}), "bf16");
  EXPECT_EQ(mode({"return self.layer(x)", "b", "f", "nn.RMSNorm(64).bfloat16()"}), "bf16");
  const std::string attention = "(x[None], x[None], x[None], is_causal=True)";
  EXPECT_EQ(mode({"return F.scaled_dot_product_attention" + attention, "b"}), "bf16");
  EXPECT_EQ(mode({"return sdpa" + attention, "h", "f", "nn.ReLU()",
                  "from torch.nn.functional import scaled_dot_product_attention as sdpa"}),
            "fp16");
  EXPECT_EQ(mode({"return F.scaled_dot_product_attention" + attention}), "fp32");
}

TEST(MathModes, ConvolutionsAreTf32AsPytorchShips) {
  const std::string text = "fp32, convolutions in tf32 (as PyTorch ships)";
  const std::string body = "return self.layer(x[:, None])";
  EXPECT_EQ(mode({body, "f", "f", "nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU())"}), text);
  EXPECT_EQ(mode({body, "f", "f", "nn.ConvTranspose1d(1, 4, 3)"}), text);
  EXPECT_EQ(mode({body, "d", "f", "nn.Conv1d(1, 4, 3).double()"}), "fp32");
  EXPECT_EQ(mode({body, "b", "f", "nn.Conv1d(1, 4, 3).bfloat16()"}), "bf16");
  const Module conv{body, "f", "f", "nn.Conv1d(1, 4, 3)"};
  auto strict = described_module(conv, "", flag(MathMode::fp32));
  ASSERT_TRUE(strict) << strict.error().text();
  EXPECT_EQ(mode_text(*strict), "fp32 (asked for)");
  EXPECT_NE(strict->id, described_module(conv)->id);
}

// cuDNN computes groups of one input channel each in float32.
TEST(MathModes, DepthwiseConvolutionsAreNoneInTf32) {
  const std::string tf32 = "fp32, convolutions in tf32 (as PyTorch ships)";
  const std::string body = "return self.layer(x.view(4, 16, -1))";
  EXPECT_EQ(mode({body, "f", "f", "nn.Conv1d(16, 16, 3, groups=16)"}), "fp32");
  EXPECT_EQ(mode({body, "f", "f", "nn.Conv1d(16, 32, 3, groups=16)"}), "fp32");
  EXPECT_EQ(mode({body, "f", "f", "nn.ConvTranspose1d(16, 16, 3, groups=16)"}), "fp32");
  EXPECT_EQ(mode({body, "f", "f", "nn.Conv1d(16, 16, 3, groups=8)"}), tf32);
  EXPECT_EQ(
      mode({body, "f", "f", "nn.Sequential(nn.Conv1d(16, 16, 3, groups=16), nn.Conv1d(16, 4, 1))"}),
      tf32);
}

TEST(MathModes, OnlyResultsOfConvolutionsAreTf32) {
  const std::string conv = "self.layer(x[:, None])";
  auto task = described_module({"y = " + conv +
                                    "; return y, x @ w, y.flatten(1)[:, :64] @ w, (x * y[:, 0, "
                                    ":1]).argmax(-1)",
                                "f", "f", "nn.Conv1d(1, 4, 3)"});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_TRUE(task->tf32_convolutions);
  const MathMode wanted[] = {MathMode::tf32, MathMode::fp32, MathMode::tf32, MathMode::tf32};
  for (int i = 0; i < 4; ++i) {
    const TensorInfo& out = *task->find("out." + std::to_string(i));
    EXPECT_EQ(accuracy_of(*task, out), wanted[i]) << i;
    EXPECT_EQ(mode_of(*task, out), MathMode::fp32);
  }
  EXPECT_EQ(mode_text(*task), "fp32, convolutions in tf32 (as PyTorch ships), out.1 in fp32");
}

TEST(MathModes, OutputsMayDiffer) {
  auto task = described_module({"return x @ w, x.float() @ w.float(), x.argmax(-1)", "b", "b"});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->math_mode, MathMode::bf16);
  EXPECT_EQ(mode_of(*task, *task->find("out.0")), MathMode::bf16);
  EXPECT_EQ(mode_of(*task, *task->find("out.1")), MathMode::fp32);
  EXPECT_FALSE(task->find("out.2")->math_mode);
  EXPECT_EQ(mode_text(*task), "bf16, out.1 in fp32");
}

TEST(MathModes, EightBitsInBetweenAreNoted) {
  auto task = described_module({"return (x * 2).to(torch.float8_e4m3fn).float() @ w"});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->math_mode, MathMode::bf16);
  EXPECT_THAT(task->notes, testing::Contains(HasSubstr("rounds to eight bits")));
}

TEST(AskedAccuracy, FlagAndSideFileMustAgree) {
  const Module product{"return x @ w", "b", "b"};
  auto asked = described_module(product, "", flag(MathMode::bf16));
  ASSERT_TRUE(asked) << asked.error().text();
  EXPECT_EQ(mode_text(*asked), "bf16 (asked for)");
  EXPECT_NE(asked->id, described_module(product)->id);
  EXPECT_TRUE(described_module(product, "math_mode = \"bf16\"\n", flag(MathMode::bf16)));
  auto torn =
      described_module(product, "mode = \"eval\"\nmath_mode = \"fp16\"\n", flag(MathMode::bf16));
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().kind, ErrorKind::user);
  EXPECT_THAT(torn.error().message, HasSubstr("flag --math-mode asks for math_mode bf16"));
  EXPECT_THAT(torn.error().message, HasSubstr("the side file for fp16"));
  EXPECT_THAT(torn.error().where, HasSubstr("task.toml:2"));
  EXPECT_THAT(torn.error().remedy, HasSubstr("remove one of them"));
  auto bound = described_module(product, "rtol = 1e-3\n", bounds(1e-2, {}));
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().where, HasSubstr("task.toml:1"));
}

// The task's mode if a user asks for a mode, or the error.
std::string asked_mode(const Module& m, MathMode asked) {
  auto task = described_module(m, "", flag(asked));
  return task ? mode_text(*task) : task.error().message;
}

// PyTorch computes products of float32 in TF32 if a user turns allow_tf32 on.
TEST(AskedAccuracy, AModeNeverLoosensTheCheckExceptTf32OfFloat32) {
  const Module product{"return x @ w"}, halves{"return x @ w", "b", "b"},
      wide{"return x.float() @ w.float()", "b", "b"},
      upcast{"return (x.float() @ w.float()).bfloat16()", "b", "b"};
  EXPECT_EQ(asked_mode(product, MathMode::tf32), "tf32 (asked for)");
  EXPECT_EQ(asked_mode(product, MathMode::fp32), "fp32 (asked for)");
  EXPECT_EQ(asked_mode(halves, MathMode::fp32), "fp32 (asked for)");
  EXPECT_EQ(asked_mode(halves, MathMode::tf32), "tf32 (asked for)");
  EXPECT_EQ(asked_mode(upcast, MathMode::bf16), "bf16 (asked for)");
  EXPECT_EQ(asked_mode({"return (x @ w).float()", "b", "b"}, MathMode::bf16), "bf16 (asked for)");
  EXPECT_EQ(asked_mode({"return x.to(torch.bfloat16) @ w", "f8", "b"}, MathMode::bf16),
            "bf16 (asked for)");
  const std::string loosens = " would loosen the check: 'out' depends on ";
  for (const Module& m : {product, Module{"return x.argmax(-1)"}, Module{"return x.bfloat16()"}}) {
    EXPECT_EQ(asked_mode(m, MathMode::bf16), "math_mode bf16" + loosens + "float32 tensors");
    EXPECT_EQ(asked_mode(m, MathMode::fp16), "math_mode fp16" + loosens + "float32 tensors");
  }
  EXPECT_EQ(asked_mode(wide, MathMode::bf16), "math_mode bf16" + loosens + "float32 tensors");
  EXPECT_EQ(asked_mode({"return x @ w", "h", "h"}, MathMode::bf16),
            "math_mode bf16" + loosens + "float16 tensors");
  // In fp16 the native result may overflow, and then infinity passes.
  EXPECT_EQ(asked_mode(halves, MathMode::fp16), "math_mode fp16" + loosens + "bfloat16 tensors");
  EXPECT_EQ(asked_mode({"return x @ w", "d", "d"}, MathMode::tf32),
            "math_mode tf32" + loosens + "float64 tensors");
  EXPECT_EQ(asked_mode({"return x @ w, x.float() @ w.float()", "b", "b"}, MathMode::bf16),
            "math_mode bf16 would loosen the check: 'out.1' depends on float32 tensors");
  auto flagged = described_module(product, "", flag(MathMode::bf16));
  ASSERT_FALSE(flagged);
  EXPECT_EQ(flagged.error().kind, ErrorKind::user);
  EXPECT_EQ(flagged.error().where, "flag --math-mode");
  EXPECT_THAT(flagged.error().remedy, HasSubstr("x.to(torch.bfloat16)"));
  auto side = described_module(product, "mode = \"eval\"\nmath_mode = \"fp16\"\n");
  ASSERT_FALSE(side);
  EXPECT_THAT(side.error().where, HasSubstr("task.toml:2"));
  EXPECT_THAT(side.error().remedy, HasSubstr("x.to(torch.float16)"));
}

TEST(AskedAccuracy, BoundsChangeTheTask) {
  const Module product{"return x @ w"};
  auto plain = described_module(product), asked = described_module(product, "", bounds(1e-3, {})),
       both = described_module(product, "", bounds(1e-3, 1e-6)),
       side = described_module(product, "rtol = 1e-3\n");
  ASSERT_TRUE(plain && asked && both && side);
  EXPECT_FALSE(plain->rtol);
  EXPECT_EQ(asked->rtol, 1e-3);
  EXPECT_FALSE(asked->atol);
  EXPECT_EQ(both->atol, 1e-6);
  EXPECT_EQ(side->rtol, 1e-3);
  EXPECT_NE(plain->id, asked->id);
  EXPECT_NE(asked->id, both->id);
  EXPECT_TRUE(described_module(product, "", bounds(0.0, 1e-6)));  // only an absolute bound
}

TEST(AskedAccuracy, RefusesBoundsThatAcceptNothing) {
  struct Row {
    const char* side;
    const char* message;
  };
  for (const auto& [side, message] :
       {Row{"rtol = 0\n", "this bound"}, Row{"rtol = 0.0\natol = 0\n", "rtol and atol = 0"},
        Row{"rtol = nan\n", "rtol is nan"}, Row{"atol = inf\n", "atol is inf"},
        Row{"atol = -1\n", "atol is -1"}, Row{"tolerance = 0\n", "tolerance is 0"},
        Row{"tolerance = nan\n", "tolerance is nan"}, Row{"tolerance = inf\n", "tolerance is inf"},
        Row{"tolerance = -2.5\n", "tolerance is -2.5"}, Row{"rtol = true\n", "wrong type"},
        Row{"rtol = \"1e-3\"\n", "wrong type"}}) {
    auto task = described_module({"return x @ w"}, side);
    ASSERT_FALSE(task) << side;
    EXPECT_EQ(task.error().kind, ErrorKind::user);
    EXPECT_THAT(task.error().message, HasSubstr(message));
    EXPECT_THAT(task.error().where, HasSubstr("task.toml:1"));
    EXPECT_FALSE(task.error().remedy.empty());
  }
  auto flagged = described_module({"return x @ w"}, "", bounds(0.0, {}));
  ASSERT_FALSE(flagged);
  EXPECT_EQ(flagged.error().where, "flag --rtol");
  EXPECT_THAT(
      described_module({"return x @ w"}, "rtol = 1" + std::string(400, '0') + "\n").error().message,
      HasSubstr("rtol is 1000"));
  EXPECT_THAT(described_module({"return x @ w"}, "rtol = 1" + std::string(5000, '0') + "\n")
                  .error()
                  .message,
              HasSubstr("does not parse"));
}

}  // namespace
}  // namespace cutegen::torch
