#!/bin/bash
# A real systemd as process 1 of namespaces of its own, over a copy-on-write view of this host's
# files. Needs root and cgroups of version 1 or both versions; leaves nothing behind.
#
#   systemd_box.sh up DIR [PATH:PATH_INSIDE ...]   boot; DIR holds the box, the paths are bound read-only
#   systemd_box.sh in DIR COMMAND ...              run a command inside
#   systemd_box.sh down DIR                        kill everything inside, and remove the box
#
# /tmp, /run and /dev inside are empty at first. A path inside cannot be below /tmp.
set -e
box=$2
group=psrt-$(basename "$box")
hierarchies="unified systemd pids cpu cpuacct cpuset devices freezer blkio"

fail() { echo "box: $1" >&2; cat "$box/console" >&2; exit 1; }

up() {
  shift 2
  mkdir -p "$box/mnt"
  for name in $hierarchies; do mkdir -p "/sys/fs/cgroup/$name/$group"; done
  for file in cpuset.cpus cpuset.mems; do
    cat "/sys/fs/cgroup/cpuset/$file" > "/sys/fs/cgroup/cpuset/$group/$file"
  done
  (
    for name in $hierarchies; do echo "$BASHPID" > "/sys/fs/cgroup/$name/$group/cgroup.procs"; done
    exec setsid unshare -p -f -m -u -i -n -C "$0" boot "$box" "$@" > "$box/console" 2>&1
  ) &
  for _ in $(seq 200); do
    first=$(cat /proc/$!/task/*/children 2> /dev/null | tr -d ' ') || true
    [ -n "$first" ] && [ "$(cat "/proc/$first/comm" 2> /dev/null)" = systemd ] && break
    sleep 0.05
  done
  echo "$first" > "$box/pid"
  for _ in $(seq 100); do
    state=$("$0" in "$box" systemctl is-system-running 2> /dev/null) || true
    [ "$state" = running ] && return
    sleep 0.1
  done
  fail "the system is $state"
}

boot() {
  shift 2
  mount --make-rprivate /
  mount -t tmpfs -o size=4g box "$box/mnt"
  cd "$box/mnt"
  mkdir upper work root
  mount -t overlay box -o lowerdir=/,upperdir=upper,workdir=work root
  number=0
  for pair in "$@"; do
    mkdir "bind$number"
    mount --bind "${pair%%:*}" "bind$number"
    number=$((number + 1))
  done
  cd root
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  for name in dev run; do mount -t tmpfs -o mode=755 box "$name"; done
  mount -t tmpfs -o mode=1777 box tmp
  for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    IFS=: read -r name major minor <<< "$device"
    mknod -m 666 "dev/$name" c "$major" "$minor"
  done
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
  mount -t tmpfs -o mode=1777 box dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  touch dev/console
  mount --bind /dev/null dev/console
  number=0
  for pair in "$@"; do
    mkdir -p "./${pair#*:}"
    mount --move "../bind$number" "./${pair#*:}"
    mount -o remount,bind,ro "./${pair#*:}"
    number=$((number + 1))
  done
  mount --bind proc/sys proc/sys
  mount -o remount,bind,ro proc/sys
  mount -t tmpfs -o mode=755 box sys/fs/cgroup
  for name in $hierarchies memory; do
    mkdir "sys/fs/cgroup/$name"
    case $name in
      unified) mount -t cgroup2 box "sys/fs/cgroup/$name" ;;
      systemd) mount -t cgroup -o none,name=systemd box "sys/fs/cgroup/$name" ;;
      *) mount -t cgroup -o "$name" box "sys/fs/cgroup/$name" ;;
    esac
  done
  for unit in systemd-journald-audit.socket dev-hugepages.mount dev-mqueue.mount \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
    systemd-modules-load.service systemd-remount-fs.service; do
    ln -sf /dev/null "etc/systemd/system/$unit"
  done
  ip link set lo up
  hostname box
  echo 0123456789abcdef0123456789abcdef > etc/machine-id
  mkdir -p old
  pivot_root . old
  cd /
  umount -l /old
  mount --make-rshared / # else credentials do not reach services
  exec env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /lib/systemd/systemd \
    --system --unit=basic.target --show-status=no --log-target=journal < /dev/null
}

groups() { find /sys/fs/cgroup -mindepth 2 -maxdepth 2 -type d -name "$group"; }

down() {
  kill -9 "$(cat "$box/pid")" 2> /dev/null || true
  for _ in $(seq 50); do
    for found in $(groups); do
      find "$found" -depth -type d -exec rmdir {} \; 2> /dev/null || true
    done
    [ -z "$(groups)" ] && break
    sleep 0.1
  done
  rm -f "$box/pid" "$box/console"
  rmdir "$box/mnt" "$box"
}

case $1 in
  up) up "$@" ;;
  boot) boot "$@" ;;
  in)
    shift 2
    exec nsenter -t "$(cat "$box/pid")" -m -p -u -i -n -C -r -w "$@"
    ;;
  down) down ;;
esac
