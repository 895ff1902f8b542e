#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that C++ sources are formatted as .clang-format says; --fix rewrites them.
set -euo pipefail
cd "$(dirname "$0")/.."

formatter=${CLANG_FORMAT:-clang-format-19}
command -v "$formatter" >/dev/null || {
  echo "format: error: no $formatter (run: make setup-dev)" >&2
  exit 6
}
mode=(--dry-run -Werror --ferror-limit=1)
[ "${1:-}" != --fix ] || mode=(-i)
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- \
  'src/*.cpp' 'src/*.h' 'apps/*.cpp' 'apps/*.h' 'tests/*.cpp' 'bench/*.cpp' | sort -u |
  while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done)
status=0
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 16 "$formatter" "${mode[@]}" || status=1
if [ "$status" != 0 ]; then
  echo "format: some files differ from .clang-format (run: make format)"
else
  echo "format: ${#files[@]} files"
fi
exit "$status"
