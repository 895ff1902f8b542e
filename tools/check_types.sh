#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the types of the Python code with the mypy of .venv; mypy.ini names the files and the rules.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PYTHON=.venv/bin/python
"$PYTHON" -c 'import mypy, torch' 2>/dev/null || {
  echo "types: error: .venv lacks mypy or torch (run: make setup-dev)" >&2
  exit 6
}
status=0
found=$("$PYTHON" -m mypy --no-color-output --show-error-codes 2>&1) || status=$?
if [ "$status" != 0 ]; then
  printf '%s\n' "$found"
  exit "$status"
fi
files=$(sed -n 's/^Success: no issues found in \([0-9]*\) source files\{0,1\}$/\1/p' <<<"$found")
echo "types: ${files:?mypy said: $found} files, no problem"
