# SPDX-License-Identifier: Apache-2.0
import os
import sys

if not __package__:  # started by path: `python .../cutegen_worker`
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if sys.argv[1:] == ["foreign"]:
    from cutegen_worker.foreign import main
else:
    from cutegen_worker.serve import main

main()
