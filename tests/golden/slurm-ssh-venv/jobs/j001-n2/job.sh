#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=8
#SBATCH --mem=65536M
#SBATCH --time=5
#SBATCH --signal=B:TERM@120
#SBATCH --no-requeue
#SBATCH --output=slurm-%j.log
#SBATCH --open-mode=append
#SBATCH --partition='batch m2'
#SBATCH --account=team
#SBATCH --nv-meta=ml-model.x
# j001-n2: 1 block, 2 runs, nodes: 2, about 16s. The time limit leaves room for slower runs.
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
unset "${!SQUEUE_@}" "${!SCANCEL_@}" # options of the submitting shell: this script asks Slurm itself
# When the job ends. Two questions to Slurm's controller: its own time (sdiag), and the job's end in that time (squeue).
# If it doesn't answer: the latest end that the time limit allows.
GPUBENCH_END=$(($(now) + 300))
there=$(timeout 20 sdiag 2>/dev/null | sed -n 's/^sdiag output at .*(\([0-9]*\))$/\1/p')
end=$(timeout 20 squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)
if end=$(date -d "${end:-unknown}" +%s 2>/dev/null); then GPUBENCH_END=$((end + $(now) - ${there:-$(now)})); fi
export GPUBENCH_END
module load cuda/11.2
module load 'a b'

# Launcher ssh: one supervisor per node; what runs on this node is started directly. Each has a line, its standard input:
# what it is to do, and in which environment, comes down that line, and its end tells a supervisor to end.
stopping='' supervisors=() lines=()
here=${SLURMD_NODENAME:-$(uname -n)}
mapfile -t hosts < <(timeout 20 scontrol show hostnames "$SLURM_JOB_NODELIST")
if ((${#hosts[@]} < SLURM_JOB_NUM_NODES)); then
  echo "scontrol show hostnames '$SLURM_JOB_NODELIST' names ${#hosts[@]} hosts of $SLURM_JOB_NUM_NODES" >&2
  exit 40
fi
hosts=("${hosts[@]:0:SLURM_JOB_NUM_NODES}")
patience=(90 30) # seconds after rank 0, in which the others end by themselves; when told to end
ssh=(ssh -T -x -o BatchMode=yes -o ConnectTimeout=20 -o ControlPath=none -o LogLevel=ERROR)
ssh+=(-o ServerAliveInterval=10 -o ServerAliveCountMax=3)
# shellcheck disable=SC2016 # for the shell at the other end
follow='exec bash -c '\''IFS= read -r -d "" job && eval "$job"'\'
launch() {
  local rank pid code deadline=0 worst=0
  for ((rank = 0; rank < ${#hosts[@]}; rank++)); do
    start "$rank" "$@"
  done
  if [ -n "$stopping" ]; then forward; fi # a signal between the start of a supervisor and the line that remembers it
  for rank in "${!supervisors[@]}"; do
    pid=${supervisors[rank]}
    if ((rank == 1)); then deadline=$(($(now) + patience[${#stopping}])); fi
    while ((rank > 0)) && kill -0 "$pid" 2>/dev/null; do # rank 0 has ended: nothing is measured any more
      if (($(now) > deadline)); then hang_up; fi
      sleep 0.1
    done
    while true; do # a signal interrupts wait; the supervisor still has to end its processes
      wait "$pid"
      code=$?
      kill -0 "$pid" 2>/dev/null || break
    done
    if ((code != 0)); then echo "rank $rank on ${hosts[rank]} ended with $code" >&2; fi
    if ((code > worst)); then worst=$code; fi
  done
  hang_up
  supervisors=()
  return "$worst"
}
start() { # RANK COMMAND...
  local rank=$1 line program=("${ssh[@]}" "${hosts[$1]}" "$follow") become=''
  shift
  if [ "${hosts[rank]}" = "$here" ]; then program=(bash -c "$follow") become=exec; fi
  exec {line}<> <(:) # a pipe: the reading end is opened anew, so that nobody but this script holds the writing one
  (
    exec <"/proc/self/fd/$line"
    hang_up "$line"
    # The scheduler may signal every process of the job; the end of ssh would cut off what its supervisor has to say.
    if [ -z "$become" ]; then trap '' TERM INT HUP; fi
    exec "${program[@]}"
  ) &
  supervisors+=("$!")
  lines+=("$line")
  {
    export -p
    if [ -z "$become" ]; then echo 'unset CUDA_VISIBLE_DEVICES'; fi # it names the GPUs of this node
    # PBS makes the job's TMPDIR on its first node, and for tasks that it starts itself.
    if [ -z "$become" ]; then echo "(umask 077 && mkdir -p -- \"\$SCRATCHDIR\")"; fi
    printf 'export GPUBENCH_STOP_AT_EOF="the job was told to end"\n'
    printf 'export GPUBENCH_RANK=%q\ncd %q || exit 40\n%s' "$rank" "$PWD" "$become"
    printf ' %q' "$@"
    printf '\nexit\n\0'
  } >&"$line" & # a host that doesn't answer never reads
}
hang_up() { # [LINE]: close it and all others
  local line
  for line in ${lines[@]+"${lines[@]}"} "$@"; do exec {line}>&-; done
  lines=()
}
forward() { # not by a signal: Apptainer with --fakeroot ends by it, and hands none on (internal/pkg/fakeroot/fakefake.go)
  stopping=1
  hang_up
}
trap forward TERM INT HUP
write_record() { "$@"; } # what only writes a record

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
run /images/stack/bin/python -I ../../node.pyz run --spec specs/001-0-86e1106298f1.json
run /images/stack/bin/python -I ../../node.pyz run --spec specs/001-1-b8a6bf715f8b.json

exit "$worst"
