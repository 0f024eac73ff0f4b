"""Tasks whose results are files, the folder that holds them, and the processes that compute them side by side.

With them goes what the makers of tasks share: files that are whole or not there, independent seeds by name, code by its
address, the number of processors, and progress.
"""

from __future__ import annotations

from sateen.core.code import find_code
from sateen.core.progress import SILENT, Progress
from sateen.core.seeds import stream_seed
from sateen.core.threads import processors
from sateen.files.atomic import replacing, write_text

__all__ = ["SILENT", "Progress", "find_code", "processors", "replacing", "stream_seed", "write_text"]
