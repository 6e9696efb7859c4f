"""Hand the generated pages to mkdocs; the only importer of mkdocs and of mkdocs-gen-files."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs_gen_files.editor import FilesEditor

editor = FilesEditor.current()
root = Path(editor.config.config_file_path).parent
sys.path.insert(0, str(root))
# `mkdocs serve` runs this file afresh and keeps what it imported: rules and pages would go stale.
for name in [name for name in sys.modules if name.split(".")[0] in {"gen", "probes"}]:
    del sys.modules[name]

from gen.corpus import read_corpus  # noqa: E402
from gen.days import build_day  # noqa: E402
from gen.paths import check  # noqa: E402
from gen.site import pages  # noqa: E402
from probes.errors import AdrError  # noqa: E402

try:
    generated = pages(read_corpus(root), build_day(os.environ, datetime.now(UTC).date()))
    # mkdocs-gen-files would silently replace a hand-written page of the same name.
    check([*(file.src_uri for file in editor.files), *generated])
except AdrError as exc:
    raise PluginError(str(exc)) from exc

for path, content in generated.items():
    with editor.open(path, "w", newline="\n") as stream:
        stream.write(content)
