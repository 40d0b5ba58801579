# frozen_string_literal: true

require "json"
require "socket"

# Programs with a port, which are asked while they run.
module Ports
  # A program that runs: its process and the lines that it has printed.
  Program = Struct.new(:pid, :lines)

  # Runs `code` in a Ruby that has required rperf, by the command `before` if there is one; yields the program when it
  # has printed a line, and ends it.
  def listening(code, env: {}, before: [], err: :err)
    out = path_to(".listening#{@listening = @listening.to_i + 1}")
    command = [*before, ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "$stdout.sync = true\n#{code}"]
    pid = Process.spawn(clean_environment.merge(env), *command, chdir: directory, pgroup: true, out:, err:)
    wait_until("line of the program") { File.exist?(out) && File.read(out).end_with?("\n") }
    yield Program.new(pid, File.readlines(out, chomp: true))
  ensure
    end_group(pid) if pid
  end

  # The answer to a GET: its status and body.
  def ask(socket, path = "/v1/hello", limit: 20)
    UNIXSocket.open(socket) do |port|
      port.timeout = limit * Commands::SLOWNESS
      port.write("GET #{path} HTTP/1.1\r\nConnection: close\r\n\r\n")
      head, body = port.read.split("\r\n\r\n", 2)
      [head[%r{\AHTTP/1.1 (\d+)}, 1].to_i, JSON.parse(body)]
    end
  end

  def answers?(socket)
    ask(socket).first == 200
  rescue SystemCallError
    false
  end

  # The sockets in the user's directory.
  def sockets = Dir[File.join(temporary_directory, "rperf-*", "*.sock")]

  # What `rperf ps` lists of this example, by process: root sees all programs of the machine.
  def listed(**)
    outcome = rperf("ps", "--json", **)
    expect(outcome.stderr).to eq("")
    programs = JSON.parse(outcome.stdout).fetch("programs")
    ours = programs.select { |program| program["socket"].include?(File.dirname(directory)) }
    ours.to_h { |program| [program["pid"], program] }
  end

  private

  def end_group(pid)
    Process.kill(:KILL, -pid)
  rescue Errno::ESRCH
    nil # It has ended by itself.
  ensure
    note_crash_by(Process.wait2(pid).last)
  end
end
