# frozen_string_literal: true

require "json"
require "rbconfig"
require "tmpdir"

# Runs programs with a time limit. Each example has a directory of its own.
module Commands
  ROOT = File.expand_path("../..", __dir__)
  TIME_LIMIT = 60
  # Whether there is time for all that could be found: bin/test --long.
  LONG = ENV["RPERF_LONG"] == "1"
  # Signals by which a program ends that has a fault.
  CRASHES = %w[SEGV BUS ILL FPE ABRT TRAP SYS].map { |name| Signal.list.fetch(name) }.freeze
  # How many times as long as elsewhere programs may take: bin/test --arm64 has an emulator.
  SLOWNESS = ENV["RPERF_EMULATED"] == "1" ? 10 : 1
  # The environment of a program that signals reach at each instruction. The emulator has them wait for the next
  # branch, if its blocks of code aren't of one instruction each.
  INTERRUPTED_ANYWHERE = (SLOWNESS == 1 ? {} : { "QEMU_ONE_INSN_PER_TB" => "1" }).freeze

  # A program's output, and how it ended (a Process::Status).
  Outcome = Struct.new(:stdout, :stderr, :status) do
    # The lines that are rperf's.
    def messages = stderr.lines.grep(/\Arperf: /)
  end

  # How often something is done that goes wrong seldom: so many times, or two fifths of that if there is little time.
  def self.times(number) = LONG ? number : number * 2 / 5

  def self.included(group)
    group.around do |example|
      @example_id = example.id
      Dir.mktmpdir("rperf spec") do |outer|
        @directory, @temporary_directory = %w[work tmp].map { |name| File.join(File.realpath(outer), name) }
        [directory, temporary_directory].each { |path| Dir.mkdir(path) }
        example.run
      end
    end
  end

  # The example's directory; programs run in it. And the temporary directory that they have.
  attr_reader :directory, :temporary_directory

  # The remains of sessions in it.
  def session_directories = Dir[File.join(temporary_directory, "rperf-*")]

  def path_to(name) = File.join(directory, name)

  def write_file(name, content)
    path_to(name).tap { |path| File.write(path, content) }
  end

  def ruby = RbConfig.ruby

  def rperf(*arguments, **options, &) = run(*rperf_command(*arguments), **options, &)

  # Without RubyGems, which takes five times as long as the entry, and which the entry has no use for.
  def rperf_command(*arguments) = [ruby, "--disable-gems", File.join(ROOT, "exe", "rperf"), *arguments]

  # Runs to the end, in a process group of its own; yields the process id, if a block is given, as soon as the
  # program has printed a line.
  def run(*command, env: {}, input: nil, limit: TIME_LIMIT)
    out, err = %w[stdout stderr].map { |name| path_to(".#{name}") }
    reader, writer = IO.pipe
    pid = Process.spawn(clean_environment.merge(env), *command, chdir: directory, pgroup: true, in: reader, out:, err:)
    reader.close
    feeder = Thread.new { feed(writer, input) }
    if block_given?
      wait_until("output of #{command.first}") { File.size(out).positive? }
      yield pid
    end
    Outcome.new(*finish(pid, out, err, limit))
  ensure
    feeder&.join
  end

  # @param limit [Numeric] in seconds of a machine that is not emulated
  # @param detail [Proc] says more of what is there instead
  def wait_until(what, limit: TIME_LIMIT, detail: nil)
    limit *= SLOWNESS
    deadline = now + limit
    until yield
      raise ["no #{what} after #{limit} s", *detail&.call].join(": ") if now > deadline

      sleep 0.01
    end
  end

  # The threads of a process, with what each does, as the kernel says.
  def threads_of(pid)
    Dir["/proc/#{pid}/task/*"].map do |task|
      name, state, wait = %w[comm stat wchan].map { |file| File.read(File.join(task, file)) }
      "#{name.chomp} #{state[/\) (\w)/, 1]} #{wait}"
    end
  rescue SystemCallError
    []
  end

  # What a program prints as JSON that has rperf, and may profile itself.
  def told(program, *options, symbolize_names: false, **run_options)
    lib = "-I#{File.join(ROOT, "lib")}"
    outcome = run(ruby, *options, lib, "-rrperf", "-rjson", "-e", program, **run_options)
    raise outcome.stderr unless outcome.status.success? && outcome.stderr.empty?

    JSON.parse(outcome.stdout, symbolize_names:)
  end

  private

  # As a user's shell has it, whatever started the specs.
  def clean_environment
    ours = { "RUBYOPT" => nil, "RUBYLIB" => nil, "XDG_RUNTIME_DIR" => nil, "TMPDIR" => temporary_directory,
             "XDG_CACHE_HOME" => path_to(".a cache") }
    ENV.keys.grep(/\A(RPERF_|BUNDLE)/).to_h { |name| [name, nil] }.merge(ours)
  end

  # A program need not read all of its input.
  def feed(writer, input)
    writer.write(input) if input
  rescue Errno::EPIPE
    nil
  ensure
    writer.close
  end

  def finish(pid, out, err, limit)
    status = nil
    wait_until("end of process #{pid}", limit:) { (_, status = Process.wait2(pid, Process::WNOHANG)) && status }
    note_crash_by(status)
    [File.binread(out), File.read(err), status]
  rescue RuntimeError
    note_crash
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    raise
  end

  # A program may have run it, which tells of its signal as shells do.
  def note_crash_by(status)
    note_crash if CRASHES.include?(status&.termsig || (status&.exitstatus.to_i - 128))
  end

  # For bin/support/specs/crashes.rb: if the example fails, no second try may hide that.
  def note_crash
    directory = File.join(ROOT, "tmp/specs")
    File.write(File.join(directory, "crashes"), "#{@example_id}\n", mode: "a") if File.directory?(directory)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
