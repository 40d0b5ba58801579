# frozen_string_literal: true

require "etc"
require "tmpdir"

# Programs of another user than the one that runs the specs, who is root.
module OtherUser
  NAME = "nobody"

  # @return [Boolean] whether this namespace of users has the one with this number: some have root alone
  def self.here?(number)
    File.foreach("/proc/self/uid_map").any? do |line|
      first, _, count = line.split.map(&:to_i)
      (first...(first + count)).cover?(number)
    end
  end

  # @return [Integer, nil] its number; nil where root can't become it
  def self.number
    return unless Process.euid.zero? && RUBY_PLATFORM.include?("linux")

    Etc::Passwd.find { |it| it.name == NAME }&.uid&.then { |number| number if here?(number) }
  end

  USER = number
  # What runs a command as this user, who may read the Ruby of whoever runs the specs.
  COMMAND = %W[setpriv --reuid #{USER} --regid #{USER} --clear-groups --inh-caps -all,+dac_read_search
               --ambient-caps +dac_read_search --bounding-set -all,+dac_read_search].freeze

  # A directory of this user's, as its temporary one.
  def others_directory(name = "of_other")
    path_to(name).tap do |path|
      Dir.mkdir(path, 0o700)
      File.chown(USER, USER, path)
    end
  end

  # A program of this user with a port, which takes no part in this one's.
  def others_program(code, &)
    listening(code, before: COMMAND, env: { "TMPDIR" => others_directory }, &)
  end

  # A directory that this user's processes find, also those that have no more rights.
  def others_public_directory
    Dir.mktmpdir("rperf-spec-", "/tmp") do |path|
      File.chown(USER, USER, path)
      yield path
    end
  end

  # Processes of this user, each of which does the `work`, and says when it is ready; yields their numbers.
  def others_processes(count, work)
    reader, writer = IO.pipe
    pids = Array.new(count) do
      fork do
        Process::Sys.setresgid(USER, USER, USER)
        Process::Sys.setresuid(USER, USER, USER)
        work.call(-> { writer.write(".") })
      ensure
        exit!(0)
      end
    end
    writer.close
    raise "a process has failed" unless reader.read(count).size == count

    yield pids
  ensure
    pids&.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    [reader, writer].each(&:close)
  end
end
