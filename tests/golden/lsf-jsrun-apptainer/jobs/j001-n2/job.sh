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
shape=(--rs_per_host=1 --tasks_per_rs=1 --cpu_per_rs=42 --gpu_per_rs=6 --bind=rs --smpiargs=off --exit_on_error=0 --latency_priority=gpu-cpu)
mapfile -t hosts < <(awk 'NR == 1 {launch = $1} $1 != launch && !seen[$1]++ {print $1}' "$LSB_DJOB_HOSTFILE")
if ((${#hosts[@]} < 2)); then
  echo "LSB_DJOB_HOSTFILE names ${#hosts[@]} compute nodes beside the launch node, the job is for 2" >&2
  exit 40
fi
launch() {
  local code=130
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
  return "$code"
}
# LSF signals every process of the job on the launch node, and a step that jsrun ends at once can't write its record.
unheard() { trap '' TERM INT HUP USR2; }
signal_steps() {
  timeout 20 jskill --signal 15 all && signalled=1
}
wait_for_all() { "$@"; } # no node's end ends the others
trap 'stopping=1 signalled=' TERM INT HUP USR2
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
in_image=(bash -c "$GPUBENCH_APPTAINER" gpubench-apptainer GPUBENCH_CLOCK GPUBENCH_END GPUBENCH_JOB_TOKEN GPUBENCH_STOP_AT_EOF JSM_NAMESPACE_RANK OUTDIR SCRATCHDIR LANG -- "--bind=$OUTDIR" "--bind=$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro" "--bind=$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro" "--bind=$SCRATCHDIR" "--pwd=$PWD")

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
run "${in_image[@]}" /images/sha256-0000000000000000000000000000000000000000000000000000000000000000/image.sqsh /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-0-f672b5ab39a4.json
run "${in_image[@]}" /images/sha256-0000000000000000000000000000000000000000000000000000000000000001/image.sqsh /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/001-1-d1ae87ea0c7f.json

# Where the first node can't start the image, no run has a record: the log says why, last of all.
if [ -n "$unready" ]; then echo "gpubench: $unready" >&2; fi
exit "$worst"
