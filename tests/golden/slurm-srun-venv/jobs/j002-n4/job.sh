#!/usr/bin/env bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=7
#SBATCH --signal=B:TERM@120
#SBATCH --no-requeue
#SBATCH --output=slurm-%j.log
#SBATCH --open-mode=append
# j002-n4: 2 blocks, 4 runs, nodes: 4, about 32s. The time limit leaves room for slower runs.
# Variables and workloads of each run: specs/*.json.
# Rendered by gpubench 0.1. By hand: sbatch job.sh, in the directory where it stands; some blocks only:
# GPUBENCH_BLOCKS="1 2" sbatch job.sh
set -u
if [ ! -d specs ]; then
  echo "submit it from its own directory: cd JOB; sbatch job.sh" >&2
  exit 2
fi
trap 'echo "$?" >"end-$SLURM_JOB_ID"' EXIT
# Set here whatever the submitting shell has in OUTDIR and SCRATCHDIR: other programs use these names, too.
OUTDIR=${GPUBENCH_OUTDIR:-$(cd ../.. && pwd)}
export OUTDIR
SCRATCHDIR=${GPUBENCH_SCRATCHDIR:-}
if [ -z "$SCRATCHDIR" ]; then SCRATCHDIR="$SLURM_TMPDIR/my scratch"; fi
export SCRATCHDIR
# The job's clock: its start, and the machine's seconds since then. Setting the time of day doesn't change it.
read -r GPUBENCH_UP _ </proc/uptime
GPUBENCH_CLOCK="$(</proc/sys/kernel/random/boot_id) $GPUBENCH_UP $(date +%s.%N)"
export GPUBENCH_CLOCK
now() {
  local up at=${GPUBENCH_CLOCK##* }
  read -r up _ </proc/uptime
  echo $((${at%.*} + ${up%.*} - ${GPUBENCH_UP%.*}))
}
GPUBENCH_JOB_TOKEN=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
export GPUBENCH_JOB_TOKEN
unset "${!SQUEUE_@}" "${!SCANCEL_@}" # options of the submitting shell: this script asks Slurm itself
# When the job ends. Two questions to Slurm's controller: its own time (sdiag), and the job's end in that time (squeue).
# If it doesn't answer: the latest end that the time limit allows.
GPUBENCH_END=$(($(now) + 420))
there=$(timeout 20 sdiag 2>/dev/null | sed -n 's/^sdiag output at .*(\([0-9]*\))$/\1/p')
end=$(timeout 20 squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)
if end=$(date -d "${end:-unknown}" +%s 2>/dev/null); then GPUBENCH_END=$((end + $(now) - ${there:-$(now)})); fi
export GPUBENCH_END

# Launcher srun: one supervisor per node. Every step names its whole shape, because srun inherits only a part of the job's.
# srun runs in the background, so that this script hears signals. A task that fails doesn't end the others at once:
# rank 0 still has a record to write.
stopping='' signalled='' more=()
shape=(--ntasks-per-node=1 --kill-on-bad-exit=0 --wait=90 --export=ALL)
launch() {
  local step code=130
  srun "--nodes=$SLURM_JOB_NUM_NODES" "--ntasks=$SLURM_JOB_NUM_NODES" "${shape[@]}" ${more[@]+"${more[@]}"} "$@" &
  step=$!
  while true; do # a signal interrupts wait; the supervisors still have to end their processes
    if [ -n "$stopping" ] && [ -z "$signalled" ]; then
      signal_steps || sleep 0.5 # srun has only begun: Slurm knows no step yet
    else
      wait "$step"
      code=$?
    fi
    kill -0 "$step" 2>/dev/null || return "$code"
  done
}
write_record() { # what only writes a record, on the first node
  srun --overlap --nodes=1 --ntasks=1 "${shape[@]}" "$@"
}
# Signals go to the steps by scancel. srun would kill its tasks at once, and a supervisor has to end its processes and
# write its record.
signal_steps() {
  local steps
  mapfile -t steps < <(timeout 20 squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format=%i | grep -E '\.[0-9]+$')
  # Its message about a step that has just ended is left out of the log, where it would look like an error.
  ((${#steps[@]})) && timeout 20 scancel --signal=TERM "${steps[@]}" 2>/dev/null && signalled=1
}
trap 'stopping=1 signalled=' TERM INT HUP

# A block starts only if it can end in time; what isn't run gets a record that says why.
selected='' skip='' worst=0
# GPUBENCH_BUDGET: seconds in which all blocks have to end; the longest so far tells how long the next one takes.
due=${GPUBENCH_BUDGET:+$(($(now) + GPUBENCH_BUDGET))} block_began='' longest=0
begin_block() { # NUMBER SECONDS
  selected='' skip=''
  case " ${GPUBENCH_BLOCKS:-$1} " in *" $1 "*) selected=1 ;; esac
  local left=$((GPUBENCH_END - $(now)))
  if ((left < $2)); then skip="no time left: the block takes about $2 s, the job ends in $left s"; fi
  local at
  at=$(now)
  if [ -n "$block_began" ] && ((at - block_began > longest)); then longest=$((at - block_began)); fi
  block_began=''
  [ -n "$selected" ] && [ -z "$skip" ] || return 0
  block_began=$at
  if [ -n "$due" ] && ((due - at < (longest ? longest : $2 * 2 / 3))); then
    block_began='' skip="no time left in the budget: $((due > at ? due - at : 0)) s"
  fi
}
run() { # COMMAND...: the supervisor's, on every node
  if [ -n "$stopping" ]; then exit 130; fi
  [ -n "$selected" ] || return 0
  if [ -n "$skip" ]; then
    write_record "$@" --rank 0 --skip "$skip" || worst=$?
    if [ -n "$stopping" ]; then exit 130; fi
    return 0
  fi
  launch "$@"
  local code=$?
  if [ -n "$stopping" ]; then exit 130; fi
  if ((code != 0)); then
    worst=$code
    skip="the run before it ended with exit code $code"
    if ((code == 40)); then skip="$skip: a node can't be used"; fi
  fi
}

begin_block 3 24
run /images/stack/bin/python -I ../../node.pyz run --spec specs/003-0-5e8fd90e2a74.json
run /images/stack/bin/python -I ../../node.pyz run --spec specs/003-1-c8f806a82d66.json

begin_block 4 24
run /images/stack/bin/python -I ../../node.pyz run --spec specs/004-0-7a6ec6e5dc06.json
run /images/stack/bin/python -I ../../node.pyz run --spec specs/004-1-24b57e674b0c.json

exit "$worst"
