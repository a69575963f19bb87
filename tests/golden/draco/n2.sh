#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --cpus-per-task=80
#SBATCH --gpus-per-node=8
#SBATCH --mem=0
#SBATCH --time=120
#SBATCH --signal=B:TERM@120
#SBATCH --no-requeue
#SBATCH --output=slurm-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=batch_dgx1_m2
#SBATCH --account=sw_rapids_testing
#SBATCH --nv-meta=ml-model.rapids-benchmarks
# j002-n2: 4 blocks, 16 runs, nodes: 2, about 1h04m. The time limit leaves room for slower runs.
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
if [ -z "$SCRATCHDIR" ]; then SCRATCHDIR="/tmp"; fi
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
GPUBENCH_END=$(($(now) + 7200))
there=$(timeout 20 sdiag 2>/dev/null | sed -n 's/^sdiag output at .*(\([0-9]*\))$/\1/p')
end=$(timeout 20 squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)
if end=$(date -d "${end:-unknown}" +%s 2>/dev/null); then GPUBENCH_END=$((end + $(now) - ${there:-$(now)})); fi
export GPUBENCH_END

# Launcher srun: one supervisor per node. Every step names its whole shape, because srun inherits only a part of the job's.
# srun runs in the background, so that this script hears signals. A task that fails doesn't end the others at once:
# rank 0 still has a record to write.
stopping='' signalled='' more=()
shape=(--ntasks-per-node=1 --cpus-per-task=80 --gpus-per-node=8 --kill-on-bad-exit=0 --wait=90 --export=ALL)
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
wait_for_all() { # COMMAND...: launches something that takes differently long on different nodes
  local more=(--wait=0)
  "$@"
}
trap 'stopping=1 signalled=' TERM INT HUP

# Runtime pyxis. It starts every container that has the wanted name, also one whose unpacking was cut off, and removes none
# that has a name. So a name belongs to one start of one script; all nodes unpack the images before the first run; and the job
# removes at its end what it made, at its start what this user's dead jobs left.
GPUBENCH_CAMPAIGN=$(cd ../.. && pwd)
GPUBENCH_CONTAINERS=$SLURM_JOB_ID-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
GPUBENCH_REMOVE=$(
  cat <<'SH'
# Names of our containers that end in OVER, or whose job is older than job NOW and not in ALIVE (a job a line; empty: unknown).
dead() { # OVER NOW ALIVE
  local name job
  command -v enroot >/dev/null || return 0
  enroot list | while read -r name; do
    [[ $name =~ ^pyxis_.*gpubench-[0-9a-f]{16}-(([0-9]+)-[0-9a-f]+)$ ]] || continue
    job=${BASH_REMATCH[2]}
    if [ "${BASH_REMATCH[1]}" = "$1" ]; then echo "$name"; continue; fi
    # A job that came after this list has a larger number.
    if [ -n "$3" ] && ((job < $2)); then
      case $'\n'$3$'\n' in *$'\n'"$job"$'\n'*) ;; *) echo "$name" ;; esac
    fi
  done
}

dead "$@" | while read -r name; do
  # A stack for GPUs has so many files that a busy node removes it in minutes.
  timeout 300 enroot remove --force "$name" </dev/null || timeout 300 enroot remove --force "$name" </dev/null ||
    echo "gpubench: container $name stays on $(uname -n); your next job there removes it, or gpubench sites clean"
done
SH
)
# This user's jobs, one a line; nothing where squeue doesn't even list this one. Whatever the user's shell tells squeue: a
# filter of theirs would make living jobs dead.
GPUBENCH_ALIVE=$(unset "${!SQUEUE_@}" && timeout 20 squeue --all --noheader --user="$(id -u)" --format=%A)
case $'\n'$GPUBENCH_ALIVE$'\n' in *$'\n'"$SLURM_JOB_ID"$'\n'*) ;; *) GPUBENCH_ALIVE='' ;; esac

wait_for_all launch bash -c "$GPUBENCH_REMOVE" gpubench '' "$SLURM_JOB_ID" "$GPUBENCH_ALIVE"
# shellcheck disable=SC2329 # called as the script ends
leave() {
  stopping='' signalled=1
  # After scancel Slurm starts no further step: this node at least; the others when the next job starts there.
  wait_for_all launch bash -c "$GPUBENCH_REMOVE" gpubench "$GPUBENCH_CONTAINERS" "$SLURM_JOB_ID" '' 2>/dev/null ||
    bash -c "$GPUBENCH_REMOVE" gpubench "$GPUBENCH_CONTAINERS" "$SLURM_JOB_ID" ''
}
trap 'echo "$?" >"end-$SLURM_JOB_ID"; leave' EXIT
in_image=(--no-container-mount-home --no-container-entrypoint "--container-mounts=$OUTDIR:$OUTDIR:rw,$GPUBENCH_CAMPAIGN/jobs:$GPUBENCH_CAMPAIGN/jobs:ro,$GPUBENCH_CAMPAIGN/node.pyz:$GPUBENCH_CAMPAIGN/node.pyz:ro,$SCRATCHDIR:$SCRATCHDIR:rw" "--container-workdir=$PWD" "--container-env=CUDA_MPS_PIPE_DIRECTORY,CUDA_VISIBLE_DEVICES,GPUBENCH_CLOCK,GPUBENCH_END,GPUBENCH_JOB_TOKEN,GPUBENCH_STOP_AT_EOF,OUTDIR,SCRATCHDIR,SLURM_NODEID")

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

make_ready /images/v1.12.x.sqsh --container-image=/images/v1.12.x.sqsh "--container-name=gpubench-1f8ad6ac78064d33-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I -c pass
make_ready /images/v1.13.x.sqsh --container-image=/images/v1.13.x.sqsh "--container-name=gpubench-bd07d9afccb721df-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I -c pass
make_ready /images/v1.14.x.sqsh --container-image=/images/v1.14.x.sqsh "--container-name=gpubench-f1fe6655b18bb5a5-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I -c pass
make_ready /images/master.sqsh --container-image=/images/master.sqsh "--container-name=gpubench-2bf16226d9980f7b-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I -c pass

begin_block 5 1440
run "${in_image[@]}" --container-image=/images/v1.14.x.sqsh "--container-name=gpubench-f1fe6655b18bb5a5-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/005-0-c4e31f12d236.json
run "${in_image[@]}" --container-image=/images/v1.13.x.sqsh "--container-name=gpubench-bd07d9afccb721df-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/005-1-4f876c8d0b48.json
run "${in_image[@]}" --container-image=/images/master.sqsh "--container-name=gpubench-2bf16226d9980f7b-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/005-2-c9b762c6da08.json
run "${in_image[@]}" --container-image=/images/v1.12.x.sqsh "--container-name=gpubench-1f8ad6ac78064d33-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/005-3-b86257f0adc4.json

begin_block 6 1440
run "${in_image[@]}" --container-image=/images/master.sqsh "--container-name=gpubench-2bf16226d9980f7b-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/006-0-b759f307318d.json
run "${in_image[@]}" --container-image=/images/v1.14.x.sqsh "--container-name=gpubench-f1fe6655b18bb5a5-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/006-1-7a00fe5054b2.json
run "${in_image[@]}" --container-image=/images/v1.12.x.sqsh "--container-name=gpubench-1f8ad6ac78064d33-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/006-2-cfa8af25c30b.json
run "${in_image[@]}" --container-image=/images/v1.13.x.sqsh "--container-name=gpubench-bd07d9afccb721df-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/006-3-cdccd08da08a.json

begin_block 7 1440
run "${in_image[@]}" --container-image=/images/v1.12.x.sqsh "--container-name=gpubench-1f8ad6ac78064d33-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/007-0-6dc1e5e7d515.json
run "${in_image[@]}" --container-image=/images/master.sqsh "--container-name=gpubench-2bf16226d9980f7b-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/007-1-818a3cfa47cd.json
run "${in_image[@]}" --container-image=/images/v1.13.x.sqsh "--container-name=gpubench-bd07d9afccb721df-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/007-2-6a8910233975.json
run "${in_image[@]}" --container-image=/images/v1.14.x.sqsh "--container-name=gpubench-f1fe6655b18bb5a5-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/007-3-47da8e42094d.json

begin_block 8 1440
run "${in_image[@]}" --container-image=/images/v1.13.x.sqsh "--container-name=gpubench-bd07d9afccb721df-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/008-0-9da8bc72d99e.json
run "${in_image[@]}" --container-image=/images/v1.12.x.sqsh "--container-name=gpubench-1f8ad6ac78064d33-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/008-1-44badf0e3666.json
run "${in_image[@]}" --container-image=/images/v1.14.x.sqsh "--container-name=gpubench-f1fe6655b18bb5a5-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/008-2-cfb58016c695.json
run "${in_image[@]}" --container-image=/images/master.sqsh "--container-name=gpubench-2bf16226d9980f7b-$GPUBENCH_CONTAINERS" /opt/gpubench/stack/bin/python -I ../../node.pyz run --spec specs/008-3-bfcff904c3bf.json

# Where the first node can't start the image, no run has a record: the log says why, last of all.
if [ -n "$unready" ]; then echo "gpubench: $unready" >&2; fi
exit "$worst"
