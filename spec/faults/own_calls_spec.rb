# frozen_string_literal: true

# System calls of rperf that fail, while those of the program and of Ruby don't.
RSpec.describe "A fault in a system call of rperf", **Faults::MARKS do
  include Faults

  def made = path_to(".made")

  # How many faults there were in each of the ways: there must be some, and none without rperf.
  def expect_faults(program, calls, error, place: "rperf.so", nth: "1+", lines: 1..1, **)
    File.write(made, "")
    env = { "LD_PRELOAD" => Faults.library, "FAULTS_CALLS" => calls.join(","), "FAULTS_ERRNO" => error::Errno.to_s,
            "FAULTS_IN" => place, "FAULTS_NTH" => nth, "FAULTS_MADE" => made }
    lefts = expect_same(program, env:, is_whole: false, lines:, **)
    lines = File.readlines(made, chomp: true)
    expect(lines).not_to be_empty
    expect(lines.map { |line| line.split.last }.uniq - calls).to be_empty
    lefts
  end

  # For ever. The first number is how many lines there are: where nothing can be written, nothing can be said.
  faults = {
    "no file can be opened" => [%w[open open64 openat openat64], Errno::EMFILE, 1..1],
    "no file may be opened" => [%w[open open64 openat openat64], Errno::EACCES, 1..1],
    "there is no room" => [%w[write], Errno::ENOSPC, 0..2],
    "there is no more room for this user" => [%w[write], Errno::EDQUOT, 0..2],
    "nothing can be written" => [%w[write], Errno::EIO, 0..2],
    "nothing can be read" => [%w[read pread64], Errno::EIO, 1..2],
    "no attribute can be read" => [%w[statx], Errno::EIO, 1..2],
    "no signal can be handled" => [%w[sigaction], Errno::EINVAL, 1..2]
  }
  of_programs = {
    "there is no pipe" => [%w[pipe2], Errno::EMFILE, 1..1],
    "there is no thread" => [%w[pthread_create], Errno::EAGAIN, 1..1],
    "there is no timer" => [%w[timer_create], Errno::EAGAIN, 1..1]
  }
  of_commands = {
    "no directory can be made" => [%w[mkdir], Errno::ENOSPC, 1..1],
    "nothing can be locked" => [%w[flock], Errno::ENOLCK, 1..1]
  }

  faults.merge(of_programs).each_with_index do |(what, (calls, error, lines)), index|
    Faults.kinds(index).each do |kind|
      it "has no effect on the program: #{what} (#{error.name}, #{kind})" do
        expect_faults(kind, calls, error, ways: Faults.ways(index), lines:)
      end
    end
  end

  faults.merge(of_commands).each_with_index do |(what, (calls, error, lines)), index|
    Faults.kinds(index).each do |kind|
      it "has the command run the program as without rperf, or say why not: #{what} (#{error.name}, #{kind})" do
        expect_faults(kind, calls, error, place: "rperf", may_refuse: true, ways: Faults.ways(0), lines:)
      end
    end
  end

  # Interrupted ones are made again.
  interrupted = %w[open64 openat read write pread64 flock fcntl poll]

  Faults.kinds(2).each do |kind|
    it "is none for the profile either: each second one is interrupted (#{kind})" do
      expect_faults(kind, interrupted, Errno::EINTR, nth: "/2").each { |left| expect_whole(left, kind) }
    end
  end

  # Whichever is the one that fails.
  (Commands::LONG ? 1..40 : [1, 3, 7]).each do |nth|
    it "has no effect on the program: number #{nth}" do
      all = %w[open64 openat read write pread64 pthread_create timer_create]
      expect_faults(Faults::KINDS[nth % 4], all, Errno::EIO, nth: nth.to_s, ways: Faults.ways(0), lines: 0..2)
    end
  end

  sockets = {
    "there is no socket" => [%w[socket], Errno::EMFILE],
    "there is no pair of sockets" => [%w[socketpair], Errno::ENFILE],
    "a socket gets no name" => [%w[bind], Errno::EACCES],
    "nobody can be listened to" => [%w[listen], Errno::EADDRINUSE],
    "nothing can be waited for" => [%w[poll], Errno::ENOMEM]
  }

  sockets.each_with_index do |(what, (calls, error)), index|
    Faults.kinds(index).each do |kind|
      it "has no effect on a program with a port: #{what} (#{error.name}, #{kind})" do
        expect_faults(kind, calls, error, ways: Faults.ways(index), inside: <<~RUBY)
          begin
            Rperf.listen if defined?(Rperf)
          rescue Rperf::Error, SystemCallError
            nil
          end
        RUBY
      end
    end
  end
end
