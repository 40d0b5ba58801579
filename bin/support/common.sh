# What every script under bin/ shares: messages, the cache, the lock.
# Sourced by setup.sh; needs bash and $ROOT (the checkout).

# Without HOME, as in cron jobs and services, it is the directory that the system has for the user;
# some users have none but the root, which isn't theirs.
USER_HOME="${HOME:-$(unset HOME && echo ~)}"
[ "$USER_HOME" != / ] || [ -w / ] || USER_HOME=/var/tmp
# Everything that is set up once per machine lives here, outside the checkout.
CACHE="${RPERF_CACHE:-${XDG_CACHE_HOME:-$USER_HOME/.cache}/rperf}"
LOG="$CACHE/setup.log"

say() { printf 'rperf setup: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Seconds between two words about a command that still runs.
TELL_EVERY=30

# telling "what is being done" CMD...: runs CMD, and says again and again that it still does.
telling() {
  local what=$1 teller status=0
  shift
  # Its own stderr is none: bash may complain of how it is ended.
  still "$what" 3>&2 2>/dev/null 9>&- &
  teller=$!
  "$@" || status=$?
  kill "$teller" 2>/dev/null || true
  wait "$teller" 2>/dev/null || true
  return "$status"
}

still() {
  local what=$1 started=$SECONDS nap=''
  trap 'kill "$nap" 2>/dev/null; exit' TERM
  # Ctrl-C ends the set-up, and not what runs in its background.
  while kill -0 "$$" 2>/dev/null; do
    # Whoever reads our output must not wait for it.
    sleep "$TELL_EVERY" >/dev/null 3>&- &
    nap=$!
    wait "$nap" || true
    ! kill -0 "$$" 2>/dev/null || say "  still $what ($((SECONDS - started)) s so far; log: $LOG)" 2>&3
  done
}

quietly() { "$@" >>"$LOG" 2>&1 </dev/null; }

# step "what is being done" CMD...: runs CMD with its output in the log; on a
# failure shows the log's end, so that nobody has to look for it.
step() {
  local what=$1 started=$SECONDS
  shift
  say "$what"
  printf '\n== %s: %s\n' "$what" "$*" >>"$LOG"
  if telling "$what" quietly "$@"; then
    [ $((SECONDS - started)) -lt 5 ] || say "  done in $((SECONDS - started)) s"
    return 0
  fi
  say "  failed; the last lines of $LOG:"
  tail -n 15 "$LOG" >&2
  return 1
}

# with_lock DIRECTORY CMD...: one set-up at a time in DIRECTORY. CMD runs in a
# subshell, which keeps its variables and directory to itself, and looks after its
# own errors. The lock's file descriptor is not handed on, so that a server left
# running can't hold it.
with_lock() {
  local directory=$1
  shift
  mkdir -p "$CACHE" "$directory" || die "can't write to $CACHE or $directory; set RPERF_CACHE to a directory of your own"
  if have flock; then
    (
      set +e
      flock --nonblock 9 || {
        say "waiting for another set-up to finish"
        telling "waiting for it" flock 9
      }
      "$@" 9>&-
    ) 9>"$directory/setup.lock"
  else
    (set +e && "$@")
  fi
}
