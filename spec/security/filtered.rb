# frozen_string_literal: true

# filtered.rb CALL=ACTION[,...] COMMAND...: runs the command where a filter (seccomp) allows these system calls, refuses
# them with an error, or kills the process for them. A call is a name or a number; "others" are all that no rule before
# has, which are allowed otherwise. A program of its own: filters can't be taken off.

require "rbconfig"

calls = {
  "x86_64" => { clock_nanosleep: 230, clone: 56, close_range: 436, getpriority: 140, prctl: 157, sched_setattr: 314,
                seccomp: 317, setsid: 112, timer_create: 222, timer_settime: 223 },
  "aarch64" => { clock_nanosleep: 115, clone: 220, close_range: 436, getpriority: 141, prctl: 167, sched_setattr: 274,
                 seccomp: 277, setsid: 157, timer_create: 107, timer_settime: 110 }
}.fetch(RbConfig::CONFIG["host_cpu"])
# Linux's include/uapi/linux/seccomp.h, bpf_common.h and prctl.h
actions = { "kill" => 0x80000000, "EPERM" => 0x50001, "ENOSYS" => 0x50026, "allow" => 0x7fff0000 }
load_word = 0x20
jump_if_equal = 0x15
return_word = 0x06
no_new_privileges = 38
set_mode_filter = 1

others, some = ARGV.shift.split(",").map { |rule| rule.split("=") }.partition { |call, _| call == "others" }
rules = some.flat_map do |call, action|
  number = Integer(call, exception: false) || calls.fetch(call.to_sym)
  [[jump_if_equal, 0, 1, number], [return_word, 0, 0, actions.fetch(action)]]
end
other = others.map(&:last).fetch(0, "allow")
program = [[load_word, 0, 0, 0], *rules, [return_word, 0, 0, actions.fetch(other)]]
filter = program.map { |instruction| instruction.pack("SCCL") }.join
description = [program.size].pack("Sx6") + [filter].pack("p")
$VERBOSE = nil # Kernel#syscall warns of itself.
syscall(calls[:prctl], no_new_privileges, 1, 0, 0, 0)
syscall(calls[:seccomp], set_mode_filter, 0, [description].pack("p").unpack1("J"))
exec(*ARGV)
