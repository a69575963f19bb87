#!/usr/bin/env bash
# j001-n1: 2 blocks, 4 runs, nodes: 1, about 32s.
# Variables and workloads of each run: specs/*.json.
# Rendered by gpubench 0.1. By hand: bash job.sh, or some blocks only: GPUBENCH_BLOCKS="1 2" bash job.sh
set -u
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 40
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
export GPUBENCH_END=$(($(now) + 420))

# Launcher fork: one supervisor per node, all on this machine.
supervisors=() stopping=''
# Background commands lose their standard input; the supervisors watch it for the end of the front end. Not by a number:
# the front end may have handed over the machine's lock as any of 3 to 9.
exec {front_end}<&0
launch() {
  begin "$@"
  await
}
begin() {
  local rank
  for ((rank = 0; rank < 1; rank++)); do
    GPUBENCH_RANK=$rank "$@" <&"$front_end" &
    supervisors+=("$!")
  done
  if [ -n "$stopping" ]; then forward; fi # a signal between the start of a supervisor and the line that remembers it
}
await() {
  local pid code worst=0
  for pid in "${supervisors[@]}"; do
    while true; do # a signal interrupts wait; the supervisor still has to end its processes
      wait "$pid"
      code=$?
      kill -0 "$pid" 2>/dev/null || break
    done
    if ((code > worst)); then worst=$code; fi
  done
  supervisors=()
  if forsaken; then stopping=1; fi
  return "$worst"
}
forsaken() { # nothing is ever written to the pipe of a front end: it is ready when that is dead
  [ -n "${GPUBENCH_STOP_AT_EOF:-}" ] && read -r -t 0 <&"$front_end"
}
forward() {
  stopping=1
  if ((${#supervisors[@]})); then kill -TERM "${supervisors[@]}" 2>/dev/null; fi
}
trap forward TERM INT HUP
write_record() { "$@"; } # what only writes a record

# Runtime docker: containers run as you, so that what they write is yours. Root of a rootless engine's containers is you.
GPUBENCH_USER=$(id -u):$(id -g)
case $(docker info --format '{{.SecurityOptions}}' 2>/dev/null) in *name=rootless*) GPUBENCH_USER=0:0 ;; esac
GPUBENCH_CAMPAIGN=$(cd ../.. && pwd)
in_image=(docker run --rm --interactive --pull=never --network=host --pid=host --ipc=host --userns=host "--user=$GPUBENCH_USER" "--volume=$OUTDIR:$OUTDIR" "--volume=$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro" "--volume=$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro" "--volume=$SCRATCHDIR:$SCRATCHDIR" "--workdir=$PWD" '--volume=/data sets:/data sets:ro' --env=GPUBENCH_CLOCK --env=GPUBENCH_END --env=GPUBENCH_JOB_TOKEN --env=GPUBENCH_RANK --env=GPUBENCH_STOP_AT_EOF --env=OUTDIR --env=SCRATCHDIR --env=LANG --env=NVIDIA_VISIBLE_DEVICES=void --env=MELLANOX_VISIBLE_DEVICES=void --ulimit memlock=-1)

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
run "${in_image[@]}" --entrypoint /opt/gpubench/stack/bin/python registry.example/team/bench@sha256:0000000000000000000000000000000000000000000000000000000000000001 -I ../../node.pyz run --spec specs/001-0-f1ac134b719d.json
run "${in_image[@]}" --entrypoint /opt/gpubench/stack/bin/python registry.example/team/bench@sha256:0000000000000000000000000000000000000000000000000000000000000000 -I ../../node.pyz run --spec specs/001-1-b2e7117c2b86.json

begin_block 2 24
run "${in_image[@]}" --entrypoint /opt/gpubench/stack/bin/python registry.example/team/bench@sha256:0000000000000000000000000000000000000000000000000000000000000001 -I ../../node.pyz run --spec specs/002-0-ed607b767ac0.json
run "${in_image[@]}" --entrypoint /opt/gpubench/stack/bin/python registry.example/team/bench@sha256:0000000000000000000000000000000000000000000000000000000000000000 -I ../../node.pyz run --spec specs/002-1-be79ee601bde.json

exit "$worst"
