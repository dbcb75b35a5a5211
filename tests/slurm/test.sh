#!/usr/bin/env bash
# The preset smoke on a real Slurm, as an array of four tasks, while tasks are killed, stopped and requeued and the controller is
# restarted: in the end the rows are those of `make reproduce PRESET=smoke`, but for times, and none is lost or measured twice.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/rank-study-slurm.XXXXXX")
export SLURM_CONF=$work/cluster/slurm.conf
ended() {
    code=$?
    [[ $code = 0 ]] || tail -n 15 "$work"/study/slurm-logs/*.out >&2 || true
    tests/slurm/cluster.sh stop "$work/cluster"
    rm -rf "$work"
    exit "$code"
}
trap ended EXIT

"${CARGO:-cargo}" build --release --locked --quiet
target=$("${CARGO:-cargo}" metadata --format-version 1 --no-deps --offline |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
rank_study=$target/release/rank-study

# What the rows are to be: those of `make test-reproduce`, or of a run of their own.
rows=$here/data/smoke
if [[ ! -d $rows ]] || ! "$rank_study" verify --preset smoke --quiet >/dev/null 2>&1; then
    make reproduce PRESET=smoke
fi

# The same definitions, without rows.
mkdir "$work/study"
git ls-files -z --cached --others --exclude-standard -- . ':!data' ':!figures' |
    tar --create --null --files-from=- | tar --extract --directory "$work/study"
cd "$work/study"

"$here/tests/slurm/cluster.sh" start "$work/cluster"
submit() { "$rank_study" slurm --preset smoke --tasks 4 --cpus 1 --time 60 --quiet && bash rank-study.sbatch submit; }
# The job that is at work on a part.
job_of() { squeue --noheader --states=running --format '%K %i' | awk -v part="$1" '$1 == part { print $2 }'; }
is_running() { [[ $(squeue --noheader --job "$1" --format %T 2>/dev/null) = RUNNING ]]; }
wait_for() {
    local what=$1
    shift
    for _ in $(seq 2400); do
        "$@" && return
        sleep 0.25
    done
    echo "waited ten minutes for $what" >&2
    exit 1
}
has_rows() { compgen -G "data/smoke/*/shards/$1-of-4/rows.csv" >/dev/null; }
was_stopped() { grep --quiet --no-messages 'stopping after the configurations' slurm-logs/*.out; }
no_jobs() { [[ -z $(squeue --noheader --format %i) ]]; }
say() { echo "slurm: $*"; }
signal() { pkill "-$1" --full -- "--shard $2/4 --stage 1"; }
# A part stands still from its first rows on, or a fast machine would end it before its turn.
pause() {
    wait_for "rows of part $1" has_rows "$1"
    signal STOP "$1" && touch "$work/paused-$1"
}
is_paused() { [[ -e $work/paused-$1 ]]; }

say "$(submit)"
for task in 1 2 3; do
    pause "$task" &
done
for task in 1 2 3; do
    wait_for "the pause of part $task" is_paused "$task"
    job=$(job_of "$task")
    [[ $job ]] || { echo "nobody is at work on part $task" >&2; exit 1; }
    case $task in
    1)
        say "part 1 is killed"
        signal KILL 1
        ;;
    2)
        say "part 2 is sent SIGTERM"
        # Of a job that has only just begun it may say that it cannot be altered now, and has signalled it.
        timeout 10 scancel --signal=TERM --batch "$job" || true
        signal CONT 2
        wait_for "the stop of part 2" was_stopped
        ;;
    3)
        say "the controller is restarted, and part 3 requeued"
        "$here/tests/slurm/cluster.sh" restart "$work/cluster"
        is_running "$job" || { echo "part 3 did not outlive the controller's restart" >&2; exit 1; }
        scontrol requeue "$job"
        signal CONT 3
        ;;
    esac
done
wait_for "the end of all jobs" no_jobs
say "what is missing is submitted again: $(submit)"
wait_for "the end of all jobs" no_jobs
if compgen -G "data/smoke/*/shards"; then
    echo "parts are left" >&2
    exit 1
fi
if grep 'measured twice' slurm-logs/*.out; then
    echo "a cell was measured twice" >&2
    exit 1
fi
"$rank_study" verify --preset smoke --quiet
python3 "$here/tests/slurm/same_rows.py" "$rows" data/smoke
