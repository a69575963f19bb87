#!/usr/bin/env bash
#BSUB -J j001-n2
#BSUB -nnodes 2
#BSUB -W 0:05
#BSUB -wa TERM
#BSUB -wt 2
#BSUB -o lsf-%J.log
#BSUB -P team
#BSUB -q 'batch hm'
#BSUB -alloc_flags 'gpumps smt4'
#BSUB -M 524288
#BSUB -B
# j001-n2: 1 block, 2 runs, nodes: 2, about 16s. The time limit leaves room for slower runs.
# Variables and workloads of each run: specs/*.json.
# Rendered by gpubench 0.1. By hand: bsub < job.sh, in the directory where it stands; some blocks only:
# GPUBENCH_BLOCKS="1 2" bsub < job.sh
set -u
if [ ! -d specs ]; then
  echo "submit it from its own directory: cd JOB; bsub < job.sh" >&2
  exit 2
fi
trap 'echo "$?" >"end-$LSB_JOBID"' EXIT
# Set here whatever the submitting shell has in OUTDIR and SCRATCHDIR: other programs use these names, too.
OUTDIR=${GPUBENCH_OUTDIR:-$(cd ../.. && pwd)}
export OUTDIR
SCRATCHDIR=${GPUBENCH_SCRATCHDIR:-${TMPDIR:-/tmp}}
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
# As late as it may end; earlier if LSF says so, which counts in minutes.
GPUBENCH_END=$(($(now) + 300))
left=$(timeout 20 bjobs -noheader -o time_left "$LSB_JOBID")
if [[ $left =~ ^([0-9]+):([0-9]+) ]]; then
  left=$((10#${BASH_REMATCH[1]} * 3600 + 10#${BASH_REMATCH[2]} * 60))
  if (($(now) + left + 60 < GPUBENCH_END)); then GPUBENCH_END=$(($(now) + left)); fi
fi
export GPUBENCH_END
module load cuda/11.2
module load 'a b'

# Launcher jsrun: one supervisor per compute node, in a resource set that holds all that the job may use of the node. This
# script runs on a launch node, which jsrun never starts anything on.
stopping='' signalled='' step=''
apart=''
shape=(--rs_per_host=1 --tasks_per_rs=1 --cpu_per_rs=42 --gpu_per_rs=6 --bind=rs --smpiargs=off --exit_on_error=0 --latency_priority=gpu-cpu)
mapfile -t hosts < <(awk 'NR == 1 {launch = $1} $1 != launch && !seen[$1]++ {print $1}' "$LSB_DJOB_HOSTFILE")
if ((${#hosts[@]} < 2)); then
  echo "LSB_DJOB_HOSTFILE names ${#hosts[@]} compute nodes beside the launch node, the job is for 2" >&2
  exit 40
fi
launch() {
  local code=130
  begin_apart "$@"
  (unheard && exec jsrun --nrs=2 "${shape[@]}" "$@") &
  step=$!
  while true; do # a signal interrupts wait; the supervisors still have to end their processes
    if [ -n "$stopping" ] && [ -z "$signalled" ]; then
      signal_steps || sleep 0.5 # jsrun has only begun: there is no step yet
    else
      wait "$step"
      code=$?
    fi
    kill -0 "$step" 2>/dev/null || break
  done
  end_apart || code=$?
  return "$code"
}
begin_apart() { # the scheduler's supervisor, on this launch node; it hears signals itself, too
  (trap '' USR2 && exec "$@" --role scheduler) &
  apart=$!
}
end_apart() { # it ends by itself soon after those of the nodes
  local code=0 deadline=$(($(now) + 210))
  while kill -0 "$apart" 2>/dev/null; do
    if (($(now) > deadline)); then kill -KILL "$apart"; fi
    if [ -n "$stopping" ] && [ -z "$signalled" ]; then signal_steps; fi
    sleep 0.1
  done
  wait "$apart" || code=$?
  apart=''
  return "$code"
}
# LSF signals every process of the job on the launch node, and a step that jsrun ends at once can't write its record.
unheard() { trap '' TERM INT HUP USR2; }
signal_steps() {
  if [ -n "$apart" ]; then kill -TERM "$apart" 2>/dev/null; fi
  timeout 20 jskill --signal 15 all && signalled=1
}
trap 'stopping=1 signalled=' TERM INT HUP USR2
write_record() { "$@"; } # what only writes a record
in_image=(bash -c ". \"\$0\" >&2 && exec \"\$@\"")

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

begin_block 1 24
run "${in_image[@]}" '/home/o'"'"'neill & co/modules/summit-b0/load.sh' /sw/python/bin/python3 -I ../../node.pyz run --spec specs/001-0-f672b5ab39a4.json
run "${in_image[@]}" '/home/o'"'"'neill & co/modules/summit-b1/load.sh' /sw/python/bin/python3 -I ../../node.pyz run --spec specs/001-1-d1ae87ea0c7f.json

exit "$worst"
