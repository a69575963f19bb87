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
wait_for_all() { # COMMAND...: launches something that takes differently long on different nodes
  local when_told=${patience[1]}
  local patience=(1000000 "$when_told")
  "$@"
}
trap forward TERM INT HUP
write_record() { "$@"; } # what only writes a record

# Runtime apptainer. Only the variables that are named before "--" are handed over, each where it is set. They replace those
# of the image. APPTAINERENV_NAME takes any value: option --env splits values at commas. Without --no-eval a shell would
# expand variables in them.
GPUBENCH_CAMPAIGN=$(cd ../.. && pwd)
GPUBENCH_APPTAINER=$(
  cat <<'SH'
for name in "${!APPTAINERENV_@}" "${!SINGULARITYENV_@}"; do unset "$name"; done # of the user, or of a job around this one
while [ "$1" != -- ]; do
  if [ -n "${!1+set}" ]; then export "APPTAINERENV_$1=${!1}"; fi
  shift
done
shift
exec apptainer --quiet exec --cleanenv --no-eval --no-home "$@"
SH
)
in_image=(bash -c "$GPUBENCH_APPTAINER" gpubench-apptainer GPUBENCH_CLOCK GPUBENCH_END GPUBENCH_JOB_TOKEN GPUBENCH_RANK GPUBENCH_STOP_AT_EOF OUTDIR SCRATCHDIR LANG -- "--bind=$OUTDIR" "--bind=$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro" "--bind=$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro" "--bind=$SCRATCHDIR" "--pwd=$PWD")

# Each node compares an image's file with its sidecar before the first run: nothing that unpacks it notices changed bytes.
# It reads the whole file once a day. A note that only this user may write says which file was right, and when.
GPUBENCH_CHECK=$(
  cat <<'SH'
refuse() {
  echo "gpubench: $(uname -n): $1; import it again: gpubench images import" >&2
  exit 3
}
sidecar=$(cat "$1.json") || refuse "the sidecar of $1 can't be read"
[[ $sidecar =~ \"squashfs_sha256\":\ \"([0-9a-f]{64})\" ]] || refuse "the sidecar of $1 has no sha256"
wanted=${BASH_REMATCH[1]}
file=$(stat -L -c '%n %s bytes, inode %i, written %.9Y, changed %.9Z' -- "$1") || refuse "$1 can't be read"
notes=$SCRATCHDIR/gpubench-checked-$(id -u) note=''
(umask 077 && mkdir -p -- "$notes") 2>/dev/null
# The name is predictable, so somebody else may have made this directory: then no note counts.
mode=$(stat -c %a -- "$notes" 2>/dev/null)
if [ ! -L "$notes" ] && [ -O "$notes" ] && [ "${mode%700}" != "$mode" ]; then note=$notes/$wanted-$(uname -n); fi
if [ -f "$note" ] && [ "$(<"$note")" = "$file" ]; then
  age=$(($(date +%s) - $(stat -c %Y -- "$note")))
  if ((age >= 0 && age < 86400)); then exit 0; fi
fi
found=$(sha256sum <"$1") || refuse "$1 can't be read"
[ "${found%% *}" = "$wanted" ] || refuse "$1 isn't the file that was imported: its sha256 is ${found%% *}"
if [ -n "$note" ]; then { echo "$file" >"$note.$$" && mv -- "$note.$$" "$note"; } 2>/dev/null; fi
exit 0
SH
)
last_words() { # of a step: the first line that names a cause, else the last one that says more than that it failed
  local lines
  lines=$(sed -E 's/^slurmstepd(-[^ :]+)?: error: //; s/^pyxis:( +|$)//; s/^gpubench: //; s/^ +//' | grep -vE "$echoes|^ *$")
  { grep -m 1 -E "$causes" <<<"$lines" || tail -n 1 <<<"$lines"; } | sed 's/^\[ERROR\] //' | cut -c 1-300
}
echoes='spank|xited with (exit|return) code|couldn.t start container|container was not started|terminated unexpectedly'
echoes+='|printing enroot log|[*]{3} (JOB|STEP) .* CANCELLED AT'
causes='\[ERROR\]|FATAL ERROR|failed because|source path does not exist'
make_ready() { # FILE [COMMAND...]: the command does nothing, in the image
  local code
  if [ -n "$stopping" ]; then exit 130; fi
  {
    if wait_for_all launch bash -c "$GPUBENCH_CHECK" gpubench "$1"; then
      [ "$#" -eq 1 ] || wait_for_all launch "${in_image[@]}" "${@:2}"
    else
      code=$?
      if ((code == 3)); then unsound=1; fi
      (exit "$code")
    fi
  } 2>ready.log
  code=$?
  cat ready.log >&2
  if [ -n "$stopping" ]; then exit 130; fi
  if ((code)) && [ -z "$unready" ]; then # what fails behind it may only be its echo
    unready=$(last_words <ready.log)
    worst=$code unready="the image can't be started: ${unready:-exit code $code}"
  fi
  rm -f ready.log
}

# A block starts only if it can end in time; what isn't run gets a record that says why.
selected='' skip='' worst=0
unready='' # why the runs' images can't be started
unsound='' # an image's file isn't the imported one: nothing is started from it, not even what writes a record
# GPUBENCH_BUDGET: seconds in which all blocks have to end; the longest so far tells how long the next one takes.
due=${GPUBENCH_BUDGET:+$(($(now) + GPUBENCH_BUDGET))} block_began='' longest=0
begin_block() { # NUMBER SECONDS
  selected='' skip=$unready
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
    if [ -n "$unsound" ]; then return 0; fi
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

make_ready /images/sha256-0000000000000000000000000000000000000000000000000000000000000000/image.sqsh
make_ready /images/sha256-0000000000000000000000000000000000000000000000000000000000000001/image.sqsh

begin_block 1 24
run "${in_image[@]}" /images/sha256-0000000000000000000000000000000000000000000000000000000000000000/image.sqsh /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-0-86e1106298f1.json
run "${in_image[@]}" /images/sha256-0000000000000000000000000000000000000000000000000000000000000001/image.sqsh /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-1-b8a6bf715f8b.json

# Where the first node can't start the image, no run has a record: the log says why, last of all.
if [ -n "$unready" ]; then echo "gpubench: $unready" >&2; fi
exit "$worst"
