# SPDX-License-Identifier: Apache-2.0
"""The torch worker: the only Python of cutegen at run time. See docs/tasks.md."""
