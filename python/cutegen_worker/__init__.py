# SPDX-License-Identifier: Apache-2.0
"""The torch worker, the only Python that cutegen runs. See docs/tasks.md."""
