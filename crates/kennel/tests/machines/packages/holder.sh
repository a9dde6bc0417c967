# Starts a machine, keeps it while somebody holds the other end of our input, and takes it away.
# $1: a directory of ours. $2: the script that the machine is made by. The rest is for that script.
dir=$1
script=$2
shift 2

# Its control groups are below one that is ours to remove.
mount -t cgroup2 cgroup2 "$dir/groups" || exit 1
group=$dir/groups/kennel-machine-$$
mkdir "$group" || exit 1
(
    sh -c 'echo $PPID' >"$group/cgroup.procs"
    exec unshare --cgroup --mount --pid --net --uts --ipc --fork --kill-child --propagation private \
        sh -c "$script" machine "$@"
) &
echo $! >"$dir/pid"
cat >/dev/null
kill -KILL $!
wait
# What was in them ends in its own time.
for _ in $(seq 100); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -e "$group" ] || break
    sleep 0.05
done
