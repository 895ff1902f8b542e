# SPDX-License-Identifier: Apache-2.0
"""Blocks of networks, losses and other modules of several operators, for ordinary.py."""

from ordinary_module import Module, image

BLOCKS = [
    Module("mlp_three", "float32", "self.c(F.relu(self.b(F.relu(self.a(x)))))",
           {"x": (4096, 784)},
           "self.a = nn.Linear(784, 512)\n"
           "self.b = nn.Linear(512, 512)\n"
           "self.c = nn.Linear(512, 10)"),
    Module("autoencoder_norm", "float32", "torch.sigmoid(self.b(F.relu(self.n(self.a(x)))))",
           {"x": (8192, 1024)},
           "self.a = nn.Linear(1024, 256)\n"
           "self.n = nn.BatchNorm1d(256).eval()\n"
           "self.b = nn.Linear(256, 1024)"),
    Module("residual_block", "float32", "F.relu(x + self.m(self.d(F.relu(self.n(self.c(x))))))",
           image(32, 64, 56),
           "self.c = nn.Conv2d(64, 64, 3, padding=1, bias=False)\n"
           "self.n = nn.BatchNorm2d(64).eval()\n"
           "self.d = nn.Conv2d(64, 64, 3, padding=1, bias=False)\n"
           "self.m = nn.BatchNorm2d(64).eval()"),
    Module("bottleneck", "bfloat16", "F.relu(x + self.m(self.e(F.relu(self.n(self.d(F.relu(self.l(self.c(x)))))))))",
           image(64, 256, 28),
           "self.c = nn.Conv2d(256, 64, 1, bias=False)\n"
           "self.l = nn.BatchNorm2d(64).eval()\n"
           "self.d = nn.Conv2d(64, 64, 3, padding=1, bias=False)\n"
           "self.n = nn.BatchNorm2d(64).eval()\n"
           "self.e = nn.Conv2d(64, 256, 1, bias=False)\n"
           "self.m = nn.BatchNorm2d(256).eval()"),
    Module("inverted_residual", "float32", "x + self.m(self.e(F.relu6(self.n(self.d(F.relu6(self.l(self.c(x))))))))",
           image(32, 32, 56),
           "self.c = nn.Conv2d(32, 192, 1, bias=False)\n"
           "self.l = nn.BatchNorm2d(192).eval()\n"
           "self.d = nn.Conv2d(192, 192, 3, padding=1, groups=192, bias=False)\n"
           "self.n = nn.BatchNorm2d(192).eval()\n"
           "self.e = nn.Conv2d(192, 32, 1, bias=False)\n"
           "self.m = nn.BatchNorm2d(32).eval()"),
    Module("convnext_block", "float32",
           "x + (self.b(F.gelu(self.a(self.n(self.c(x).permute(0, 2, 3, 1))))) * self.g).permute(0, 3, 1, 2)",
           image(16, 96, 56),
           "self.c = nn.Conv2d(96, 96, 7, padding=3, groups=96)\n"
           "self.n = nn.LayerNorm(96)\n"
           "self.a = nn.Linear(96, 384)\n"
           "self.b = nn.Linear(384, 96)\n"
           "self.g = nn.Parameter(torch.full((96,), 0.1))"),
    Module("upsample_bilinear", "float32", "F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=False)",
           image(16, 64, 64)),
    Module("upsample_conv", "float16", "self.c(F.interpolate(x, scale_factor=2.0, mode='nearest'))",
           image(4, 256, 32),
           "self.c = nn.Conv2d(256, 256, 3, padding=1)"),
    Module("generator_layer", "float32", "F.relu(self.n(self.c(x)))",
           image(64, 512, 8),
           "self.c = nn.ConvTranspose2d(512, 256, 4, stride=2, padding=1, bias=False)\n"
           "self.n = nn.BatchNorm2d(256).eval()"),
    Module("unet_block", "float16", "x + self.c(F.silu(self.n(x)))",
           image(4, 320, 64),
           "self.n = nn.GroupNorm(32, 320)\n"
           "self.c = nn.Conv2d(320, 320, 3, padding=1)"),
    Module("encoder_mlp", "bfloat16", "x + self.b(F.gelu(self.a(self.n(x))))",
           {"x": (32, 197, 768)},
           "self.n = nn.LayerNorm(768)\n"
           "self.a = nn.Linear(768, 3072)\n"
           "self.b = nn.Linear(3072, 768)"),
    Module("llama_mlp", "bfloat16",
           "x + self.c(F.silu(self.a(F.rms_norm(x, (2048,), self.w))) * self.b(F.rms_norm(x, (2048,), self.w)))",
           {"x": (4096, 2048)},
           "self.w = nn.Parameter(torch.ones(2048))\n"
           "self.a = nn.Linear(2048, 5632, bias=False)\n"
           "self.b = nn.Linear(2048, 5632, bias=False)\n"
           "self.c = nn.Linear(5632, 2048, bias=False)"),
    Module("attention_gqa", "bfloat16", "F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)",
           {"q": (2, 32, 2048, 128), "k": (2, 8, 2048, 128), "v": (2, 8, 2048, 128)}),
    Module("attention_alibi", "float16", "torch.softmax(q @ k.transpose(-2, -1) * 0.125 + self.b, dim=-1) @ v",
           {"q": (4, 12, 1024, 64), "k": (4, 12, 1024, 64), "v": (4, 12, 1024, 64)},
           "self.p = torch.arange(1024)\n"
           "self.b = nn.Parameter((self.p - self.p[:, None]).abs() * torch.linspace(-1, -0.1, 12)[:, None, None])"),
    Module("attention_window", "bfloat16", "F.scaled_dot_product_attention(q, k, v, attn_mask=self.m)",
           {"q": (2, 16, 2048, 64), "k": (2, 16, 2048, 64), "v": (2, 16, 2048, 64)},
           "self.register_buffer('m', ((torch.arange(2048)[None, :] - torch.arange(2048)[:, None]).abs() < 256))"),
    Module("linear_attention", "float32",
           "((F.elu(q) + 1) @ ((F.elu(k) + 1).transpose(-2, -1) @ v)) / ((F.elu(q) + 1) @ (F.elu(k) + 1).sum(-2, "
           "keepdim=True).transpose(-2, -1))",
           {"q": (8, 8, 2048, 64), "k": (8, 8, 2048, 64), "v": (8, 8, 2048, 64)}),
    Module("router_top_2", "bfloat16", "torch.topk(torch.softmax(self.a(x).float(), dim=-1), 2, dim=-1)",
           {"x": (8192, 2048)},
           "self.a = nn.Linear(2048, 8, bias=False)"),
    Module("lora", "bfloat16", "self.a(x) + self.c(self.b(x)) * 2.0",
           {"x": (4096, 2048)},
           "self.a = nn.Linear(2048, 2048)\n"
           "self.b = nn.Linear(2048, 16, bias=False)\n"
           "self.c = nn.Linear(16, 2048, bias=False)"),
    Module("lstm_gates", "float32",
           "torch.sigmoid(g[:, 512:1024]) * c + torch.sigmoid(g[:, :512]) * torch.tanh(g[:, 1024:1536])",
           {"g": (8192, 2048), "c": (8192, 512)}),
    Module("lstm_cell", "float32",
           "torch.sigmoid((g := self.a(x) + self.b(h))[:, 1536:]) * torch.tanh(torch.sigmoid(g[:, 512:1024]) * c "
           "+ torch.sigmoid(g[:, :512]) * torch.tanh(g[:, 1024:1536]))",
           {"x": (2048, 256), "h": (2048, 512), "c": (2048, 512)},
           "self.a = nn.Linear(256, 2048)\nself.b = nn.Linear(512, 2048)"),
    Module("gated_update", "float32",
           "torch.tanh(self.a(x)) * (g := torch.sigmoid(self.b(h))) + (1 - g) * h",
           {"x": (4096, 512), "h": (4096, 512)},
           "self.a = nn.Linear(512, 512)\nself.b = nn.Linear(512, 512)"),
    Module("info_nce", "float32",
           "F.cross_entropy(F.normalize(x, dim=1) @ F.normalize(y, dim=1).T / 0.07, torch.arange(x.shape[0], "
           "device=x.device))",
           {"x": (4096, 256), "y": (4096, 256)}),
    Module("triplet_loss", "float32", "F.triplet_margin_loss(a, p, n)",
           {"a": (32768, 256), "p": (32768, 256), "n": (32768, 256)}),
    Module("focal_loss", "float32",
           "((1 - torch.exp(-F.binary_cross_entropy_with_logits(x, y, reduction='none'))) ** 2 * "
           "F.binary_cross_entropy_with_logits(x, y, reduction='none')).mean()",
           {"x": (4096, 4096), "y": "torch.randint(0, 2, (4096, 4096)).float()"}),
    Module("dice_loss", "float32",
           "1 - (2 * (torch.sigmoid(x) * y).sum((1, 2, 3)) + 1) / (torch.sigmoid(x).sum((1, 2, 3)) + y.sum((1, 2, "
           "3)) + 1)",
           {"x": (32, 1, 512, 512), "y": "torch.rand(32, 1, 512, 512)"}),
    Module("kl_div", "float32", "F.kl_div(F.log_softmax(x, dim=-1), F.softmax(y, dim=-1), reduction='batchmean')",
           {"x": (4096, 8192), "y": (4096, 8192)}),
    Module("cross_entropy_smooth", "float32", "F.cross_entropy(x, i, label_smoothing=0.1)",
           {"x": (4096, 10000), "i": "torch.randint(0, 10000, (4096,))"}),
    Module("segmentation_loss", "float32", "F.cross_entropy(x, i)",
           {"x": (8, 19, 256, 256), "i": "torch.randint(0, 19, (8, 256, 256))"}),
    Module("vocabulary_loss", "bfloat16", "F.cross_entropy(self.a(x).float(), i)",
           {"x": (2048, 1024), "i": "torch.randint(0, 32000, (2048,))"},
           "self.a = nn.Linear(1024, 32000, bias=False)"),
    Module("ada_norm", "bfloat16", "F.layer_norm(x, (1152,)) * (1 + s[:, None]) + t[:, None]",
           {"x": (16, 1024, 1152), "s": (16, 1152), "t": (16, 1152)}),
    Module("timestep_embedding", "float32",
           "torch.cat([torch.cos(t[:, None] * self.f), torch.sin(t[:, None] * self.f)], dim=-1)",
           {"t": (65536,)},
           "self.f = nn.Parameter(torch.exp(-torch.arange(160) / 160 * 9.21))"),
    Module("fourier_features", "float32", "torch.cat([torch.sin(x @ self.b), torch.cos(x @ self.b)], dim=-1)",
           {"x": (65536, 3)},
           "self.b = nn.Parameter(torch.randn(3, 128))"),
    Module("pairwise_distances", "float32", "torch.cdist(x, y)", {"x": (2048, 128), "y": (2048, 128)}),
    Module("gated_conv1d", "float32", "F.glu(self.c(x), dim=1)",
           {"x": (32, 256, 1024)},
           "self.c = nn.Conv1d(256, 512, 3, padding=1)"),
    Module("wavenet_layer", "float32", "torch.tanh(self.a(x)) * torch.sigmoid(self.b(x))",
           {"x": (16, 64, 8192)},
           "self.a = nn.Conv1d(64, 64, 3, padding=8, dilation=8)\n"
           "self.b = nn.Conv1d(64, 64, 3, padding=8, dilation=8)"),
    Module("causal_conv", "bfloat16", "F.silu(self.c(x)[..., :2048])",
           {"x": (8, 1536, 2048)},
           "self.c = nn.Conv1d(1536, 1536, 4, padding=3, groups=1536)"),
    Module("pool_and_classify", "bfloat16", "self.a(F.adaptive_avg_pool2d(x, 1).flatten(1))",
           image(128, 2048, 7),
           "self.a = nn.Linear(2048, 1000)"),
    Module("average_pool", "float32", "F.avg_pool2d(x, 3, 2, 1)", image(32, 64, 112)),
    Module("max_pool_half", "float16", "F.max_pool2d(x, 2)", image(64, 128, 56)),
    Module("local_response_norm", "float32", "self.n(x)",
           image(32, 96, 55),
           "self.n = nn.LocalResponseNorm(5, 1e-4, 0.75, 2.0)"),
    Module("separable_conv", "float32", "F.relu(self.n(self.d(self.c(x))))",
           image(32, 128, 28),
           "self.c = nn.Conv2d(128, 128, 3, padding=1, groups=128)\n"
           "self.d = nn.Conv2d(128, 256, 1)\n"
           "self.n = nn.BatchNorm2d(256).eval()"),
    Module("grouped_conv", "float32", "F.relu(self.n(self.c(x)))",
           image(32, 128, 56),
           "self.c = nn.Conv2d(128, 128, 3, padding=1, groups=32, bias=False)\n"
           "self.n = nn.BatchNorm2d(128).eval()"),
    Module("grouped_conv_bf16", "bfloat16", "F.relu(self.c(x))",
           image(64, 256, 28),
           "self.c = nn.Conv2d(256, 256, 3, padding=1, groups=8)"),
    Module("conv5", "float32", "F.relu(self.c(x))", image(64, 32, 56), "self.c = nn.Conv2d(32, 64, 5, padding=2)"),
    Module("conv_spectrogram", "float32", "F.max_pool1d(F.relu(self.n(self.c(x))), 2)",
           {"x": (32, 80, 2000)},
           "self.c = nn.Conv1d(80, 256, 5, padding=2)\n"
           "self.n = nn.BatchNorm1d(256).eval()"),
    Module("channel_shuffle", "float32", "x.view(32, 4, 60, 28, 28).transpose(1, 2).reshape(32, 240, 28, 28)",
           image(32, 240, 28)),
    Module("window_partition", "float16", "x.view(32, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 96)",
           {"x": (32, 56, 56, 96)}),
    Module("patch_merging", "float16",
           "self.a(self.n(torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], "
           "dim=-1)))",
           {"x": (32, 56, 56, 96)},
           "self.n = nn.LayerNorm(384)\n"
           "self.a = nn.Linear(384, 192, bias=False)"),
    Module("attention_pooling", "float32", "(torch.softmax(self.a(x), dim=1) * x).sum(1)",
           {"x": (256, 512, 256)},
           "self.a = nn.Linear(256, 1)"),
    Module("masked_mean", "bfloat16", "(x * m[:, :, None]).sum(1) / m.sum(1, keepdim=True)",
           {"x": (128, 512, 768), "m": "(torch.rand(128, 512) > 0.2).float()"}),
    Module("scores_einsum", "bfloat16", "torch.einsum('bihd,bjhd->bhij', x, y)",
           {"x": (8, 512, 12, 64), "y": (8, 512, 12, 64)}),
    Module("bilinear", "float32", "self.a(x, y)",
           {"x": (2048, 64), "y": (2048, 64)},
           "self.a = nn.Bilinear(64, 64, 64)"),
    Module("quantize_tensor", "float32", "torch.clamp(torch.round(x / 0.05), -128, 127).to(torch.int8)",
           {"x": (8192, 4096)}),
    Module("matrix_vector", "float32", "x @ y", {"x": (16384, 8192), "y": (8192,)}),
    Module("gram_matrix", "float32", "(x.flatten(2) @ x.flatten(2).transpose(1, 2)) / 4096", image(16, 128, 64)),
    Module("deep_product", "float32", "x.T @ y", {"x": (65536, 128), "y": (65536, 128)}),
    Module("odd_linear", "bfloat16", "F.relu(self.a(x))", {"x": (1000, 1000)}, "self.a = nn.Linear(1000, 1000)"),
    Module("odd_linear_float", "float32", "torch.tanh(self.a(x))", {"x": (777, 1234)}, "self.a = nn.Linear(1234, 999)"),
    Module("norm_and_linear", "bfloat16", "self.a(F.rms_norm(x, (4096,), self.w))",
           {"x": (2048, 4096)},
           "self.w = nn.Parameter(torch.ones(4096))\n"
           "self.a = nn.Linear(4096, 6144, bias=False)"),
    Module("prelu_norm", "float32", "self.p(self.n(self.c(x)))",
           image(16, 64, 96),
           "self.c = nn.Conv2d(64, 64, 3, padding=1)\n"
           "self.n = nn.InstanceNorm2d(64)\n"
           "self.p = nn.PReLU()"),
    Module("maxout", "float32", "self.a(x).view(4096, 512, 4).amax(-1)",
           {"x": (4096, 1024)},
           "self.a = nn.Linear(1024, 2048)"),
    Module("softmax_then_weights", "bfloat16", "torch.softmax(x + m, dim=-1)",
           {"x": (8, 16, 512, 512), "m": (8, 1, 1, 512)}),
    Module("running_mean", "float32", "torch.cumsum(x, dim=1) / torch.arange(1, 4097, device=x.device)",
           {"x": (4096, 4096)}),
    Module("sum_of_squares", "bfloat16", "(x.float() ** 2).sum()", {"x": (8192, 8192)}),
    Module("two_heads", "float32", "(self.a(x), self.b(x))",
           {"x": (8192, 512)},
           "self.a = nn.Linear(512, 4)\n"
           "self.b = nn.Linear(512, 1)"),
]
