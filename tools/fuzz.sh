#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz harnesses of tests/fuzz with clang 19 and runs each for a while.
#
# Usage: tools/fuzz.sh [SECONDS]     default 30; needs make setup-dev
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
command -v clang++-19 >/dev/null || { echo "fuzz: error: no clang++-19 (run: make setup-dev)" >&2; exit 6; }
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "$(nproc)" --target fuzzers
for source in tests/fuzz/fuzz_*.cpp; do
  name=$(basename "$source" .cpp)
  harness=build/fuzz/fuzz/$name
  name=${name#fuzz_}
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [ ! -d "tests/fuzz/seeds/$name" ] || seeds=("tests/fuzz/seeds/$name")
  echo "fuzz: $name for $seconds s"
  "$harness" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=4096 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" "$corpus" "${seeds[@]}"
done
