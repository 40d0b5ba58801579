# arm64_namespace.sh DIRECTORY CMD...: runs CMD where programs for arm64 run, too. Started by in_arm64 as
# the first process of namespaces of its own, in which it is root: nothing of this is seen outside, and
# nothing is left when it ends.
set -euo pipefail
directory=$1
shift
# Libraries for arm64 and the tools of a build, as if they were installed.
mount -t overlay overlay -o "lowerdir=$directory/system/usr:/usr" /usr
# Since Linux 6.7 each user namespace has formats of its own. F: the emulator is opened now. P: it is told argv[0].
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
# The kernel is told the bytes by their numbers: a real NUL would cut the mask short, which then fits all programs.
printf '%s' ":arm64:M::$magic:$mask:$directory/bin/qemu-aarch64:FP" >/proc/sys/fs/binfmt_misc/register
mount -t proc proc /proc
export PATH="$directory/bin:$PATH"
# Not by exec: this shell takes leave of processes whose parents have ended, as the first process has to.
"$@"
