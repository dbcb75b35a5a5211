#!/bin/bash
# Written by `rank-study slurm`; change it as your site needs.
#
#   bash @FILE@ submit     submit everything: @STAGES@, then a job that merges the rows
#                          and writes the report
#   rank-study merge@SIZE@           join what is done so far; submitting again measures only what is missing
#SBATCH --job-name=rank-study
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=@CPUS@
@OPTIONS@#SBATCH --output=@LOGS@/%x-%A_%a.out
#SBATCH --open-mode=append
# A task that is preempted or reaches its time limit continues where it was.
#SBATCH --requeue
#SBATCH --signal=B:TERM@@LEAD@
set -euo pipefail

rank_study=@PROGRAM@

submit() {
    mkdir -p @LOGS@
    local job
@SUBMIT@
}

# One shard of one stage. The shell passes on Slurm's signals, and requeues a task that was stopped with work left.
part() {
    local child code=0 stopped=
    "$rank_study" reproduce @FLAGS@ --shard "$SLURM_ARRAY_TASK_ID/@TASKS@" --stage "$1" \
        --threads "$SLURM_CPUS_PER_TASK"@DEVICE@ --grace @GRACE@ &
    child=$!
    trap 'stopped=yes; kill -TERM "$child" 2>/dev/null || true' TERM
    wait "$child" || code=$?
    # A signal ends the first wait, but not the program.
    while kill -0 "$child" 2>/dev/null; do
        code=0
        wait "$child" || code=$?
    done
    if [[ $stopped && $code = 4 && $(squeue --noheader --job "$SLURM_JOB_ID" --format %T) = RUNNING ]]; then
        scontrol requeue "$SLURM_JOB_ID"
    fi
    exit "$code"
}

case ${1-} in
submit) submit ;;
merge)
    "$rank_study" merge@SIZE@
    "$rank_study" report@SIZE@
    ;;
[1-9]*) part "$1" ;;
*) echo "bash $0 submit" >&2; exit 2 ;;
esac
