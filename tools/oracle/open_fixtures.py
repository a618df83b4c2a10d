#!/usr/bin/env python3
"""Opens the datasets under so101-*/tests/fixtures with LeRobot, tables only (their videos are not kept).

    python open_fixtures.py [PATH ...]

Checks what a reader leans on: metadata loads, row and episode totals agree with the tables, tasks resolve by row,
and the columns are those of info.json. A folder whose name begins with `bad` must fail. One line a set.
"""
import os, sys, warnings, logging
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
ROOT = Path(__file__).resolve().parents[2]


def look(root):
    import pyarrow.parquet as pq
    from lerobot.datasets.dataset_metadata import LeRobotDatasetMetadata

    meta = LeRobotDatasetMetadata(f"local/{root.name}", root=root)
    assert len(meta.episodes) == meta.total_episodes, f"{len(meta.episodes)} episode rows, info says {meta.total_episodes}"
    assert len(meta.tasks) == meta.total_tasks, f"{len(meta.tasks)} tasks, info says {meta.total_tasks}"
    rows = 0
    for path in sorted(root.glob("data/*/*.parquet")):
        table = pq.read_table(path)
        rows += table.num_rows
        want = [k for k, f in meta.features.items() if f["dtype"] != "video"]
        assert sorted(table.column_names) == sorted(want), f"{path.name} has columns {table.column_names}"
        for task in set(table["task_index"].to_pylist()):
            assert isinstance(meta.tasks.iloc[task].name, str), f"task {task} does not resolve to text"
    assert rows == meta.total_frames, f"{rows} rows, info says {meta.total_frames}"
    return f"episodes={meta.total_episodes} rows={rows} tasks={meta.total_tasks}"


def main():
    sets = [Path(p).resolve() for p in sys.argv[1:]]
    sets = sets or sorted(p.parent.parent for p in ROOT.glob("so101-*/tests/fixtures/**/meta/info.json"))
    failed = 0
    for root in sets:
        must_fail = root.name.startswith("bad")
        try:
            figures, ok = look(root), True
        except Exception as e:
            figures, ok = f"{type(e).__name__}: {(str(e).strip().splitlines() or [''])[0][:160]}", False
        good = ok != must_fail
        failed += not good
        print("PASS" if good else "FAIL", root.name, figures)
    print(f"{len(sets)} fixture sets opened by LeRobot")
    sys.stdout.flush()
    os._exit(bool(failed))


if __name__ == "__main__":
    main()
