# Starts a machine with this machine's files under an overlay, and with its own namespaces and systemd.
# Runs as the first process of its namespaces, and execs systemd.
# $1: a work directory. $2: a directory of packages. $3: a kubectl.
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/layers" "$1/root"
root="$1/root"
mount -t tmpfs tmpfs "$root"

# Not one overlay over everything: containers add another one over the root, and the kernel limits the depth.
for entry in /*; do
    name=${entry#/}
    if [ -L "$entry" ]; then
        cp -P "$entry" "$root/$name"
        continue
    fi
    case "$name" in
    bin | sbin | lib* | usr | etc | var)
        mkdir "$root/$name" "$1/layers/$name" "$1/layers/.$name"
        mount -t overlay overlay "$root/$name" \
            -o "lowerdir=$entry,upperdir=$1/layers/$name,workdir=$1/layers/.$name"
        ;;
    esac
done
for name in dev sys proc run tmp root packages old; do
    mkdir "$root/$name"
done
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys" -o ro
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/dev" -o mode=755
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    # shellcheck disable=SC2086 # a name and two numbers
    (set -- $device && mknod -m 666 "$root/dev/$1" c "$2" "$3")
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$2" "$root/packages"
# A tmpfs: overlays of containers cannot be on an overlay.
mkdir -p "$root/var/lib/kennel"
mount -t tmpfs tmpfs "$root/var/lib/kennel"
touch "$root/usr/local/bin/kubectl"
mount --bind "$3" "$root/usr/local/bin/kubectl"

cd "$root"
pivot_root . old
umount -l /old
rmdir /old
ip link set lo up

# Container images disable service starts and man pages; undo that.
rm -rf /usr/sbin/policy-rc.d /etc/dpkg/dpkg.cfg.d/*
# Start none of this machine's services.
rm -rf /etc/systemd/system/*.wants /etc/systemd/system/*.requires /etc/machine-id
: >/etc/fstab
systemd-machine-id-setup >/dev/null 2>&1
printf '[Unit]\nDefaultDependencies=no\n' >/etc/systemd/system/machine.target
exec env -i container=other /lib/systemd/systemd --system --unit=machine.target --show-status=no
