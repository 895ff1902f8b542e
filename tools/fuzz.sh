#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz harnesses of tests/fuzz with clang 19 and runs each for a while.
#
# Usage: tools/fuzz.sh [SECONDS [NAME...]]     default: 30 s, all harnesses; needs make setup-dev
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
shift || true
names=("$@")
command -v clang++-19 >/dev/null || { echo "fuzz: error: no clang++-19 (run: make setup-dev)" >&2; exit 6; }
cmake --preset fuzz >/dev/null
cmake --build build/fuzz -j "$(nproc)" --target fuzzers
if [ "${#names[@]}" = 0 ]; then
  mapfile -t names < <(printf '%s\n' tests/fuzz/fuzz_*.cpp | sed 's|.*/fuzz_||; s|\.cpp$||')
fi
for name in "${names[@]}"; do
  harness=build/fuzz/fuzz/fuzz_$name
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [ ! -d "tests/fuzz/seeds/$name" ] || seeds=("tests/fuzz/seeds/$name")
  [ "$name" != frames ] || seeds+=(tests/golden/core)
  echo "fuzz: $name for $seconds s"
  "$harness" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=4096 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" "$corpus" "${seeds[@]}"
done
