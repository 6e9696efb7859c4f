"""Hand the generated pages to mkdocs; the only importer of mkdocs and of mkdocs-gen-files."""

from __future__ import annotations

import errno
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from mkdocs.exceptions import PluginError
from mkdocs_gen_files.editor import FilesEditor

# What an operator can mend: a full disk, a quota, a read-only folder, a file where a folder should be.
OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR}
)


def told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in one line what the disk refused to mkdocs, which would print a traceback."""
    if isinstance(error, OSError) and error.errno in OF_THE_DISK:
        # A failed copy names its source first.
        place = error.filename2 or error.filename or "a file of the site"
        sys.stderr.write(f"{place}: cannot be written ({error.strerror}); expected a writable folder with room\n")
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = told
editor = FilesEditor.current()
root = Path(editor.config.config_file_path).parent
sys.path.insert(0, str(root))
# `mkdocs serve` runs this file afresh and keeps what it imported: rules and pages would go stale.
for name in [name for name in sys.modules if name.split(".")[0] in {"gen", "probes"}]:
    del sys.modules[name]

from gen.album import FOLDER, Album  # noqa: E402
from gen.corpus import read_corpus  # noqa: E402
from gen.days import build_day  # noqa: E402
from gen.paths import check  # noqa: E402
from gen.site import pages  # noqa: E402
from probes.errors import AdrError  # noqa: E402

try:
    today = build_day(os.environ, datetime.now(UTC).date())
    album = Album(root / FOLDER)
    generated = pages(read_corpus(root, texts=True, memory=album), today, album)
    # mkdocs-gen-files would silently replace a hand-written page of the same name.
    check([*(file.src_uri for file in editor.files), *generated])
except AdrError as exc:
    raise PluginError(str(exc)) from exc

for path, content in generated.items():
    try:
        with editor.open(path, "w", newline="\n") as stream:
            stream.write(content)
    except OSError as exc:
        raise PluginError(f"{path}: cannot be written to the folder for temporary files ({exc.strerror})") from exc
