# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require_relative "../../bench/support/c_extension"

# Programs that run where something is wrong, without rperf and with it: all that they leave must be the same. Goes with
# Commands and Profiles.
module Faults
  PROGRAM = File.join(Commands::ROOT, "spec/faults/program.rb")
  # What program.rb can be.
  KINDS = %w[cpu sleep threads forks fibers].freeze
  # Options of `rperf record`.
  WAYS = { "at ticks" => [], "at safepoints" => %w[--capture safepoint] }.freeze
  PROFILE = "p.pb.gz"
  # Files of the specs in the program's directory.
  OURS = %w[.stdout .stderr .made .root .debugger].freeze
  # How many seconds more than it takes otherwise, and half as long again, a program may take, on a busy machine, too.
  SECONDS = 20
  # A profile that is whole has at least this part of the time that the program's threads have lived.
  WHOLE = 0.5
  # What is `vm: true` and so on. The library stands in for functions of glibc.
  MARKS = { vm: true, emulated: false, musl: false, if: RUBY_PLATFORM.include?("linux") }.freeze
  # How `rperf` ends that runs nothing: see crates/rperf-cli/src/refusal.rs.
  REFUSALS = [1, 2, 126].map { |status| [status, nil] }.freeze
  NATIVE = Bench::CExtension.new("spec_native", File.join(Commands::ROOT, "spec/native"))

  # What a program has left. `same` is what must be the same with rperf; `lived` are seconds of its threads.
  Left = Struct.new(:same, :messages, :lived, :early, :seconds, :profile)

  # The kinds of program to try a fault with: one after the other from fault to fault, or all with --long.
  def self.kinds(number) = Commands::LONG ? KINDS : [KINDS[number % KINDS.size]]

  # The ways in which to try it: one after the other, or all.
  def self.ways(number) = Commands::LONG ? WAYS : WAYS.to_a.values_at(number % WAYS.size).to_h

  # A command in front of another, which a shell runs as "$@" when it has done `text`.
  def self.shell(text) = ["sh", "-c", "#{text} && exec \"$@\"", "sh"]

  # A library to preload, with which system calls of rperf fail: see its source.
  def self.library
    @library ||= begin
      source = File.join(Commands::ROOT, "spec/native/faults.c")
      built = File.join(Commands::ROOT, "tmp/faults", "#{Digest::SHA256.file(source).hexdigest[0, 16]}.so")
      build(source, built) unless File.file?(built)
      built
    end
  end

  # Renamed into place, as another process may build it at the same time.
  def self.build(source, built)
    FileUtils.mkdir_p(File.dirname(built))
    partial = "#{built}.#{Process.pid}"
    command = [RbConfig::CONFIG["CC"].split, "-shared", "-fPIC", "-O1", "-Wall", "-o", partial, source, "-ldl"].flatten
    output, status = Open3.capture2e(*command)
    raise "faults.c can't be built: #{output}" unless status.success?

    File.rename(partial, built)
  end
  private_class_method :build

  # Runs a program of one of the KINDS, or the Ruby file with this path, without rperf and then in each of the `ways`,
  # and expects that all that it leaves is the same, and one line of rperf's.
  # @param before [Array<String>] a command that has this run
  # @param inside [String] Ruby code that the program runs first
  # @param is_whole [Boolean] whether its profile must be there, with most of its time
  # @param lines [Range] how many lines of rperf's there are
  # @param may_refuse [Boolean] whether `rperf` may run nothing, and say so
  # @yield the number of the program's process, while it runs
  # @return [Array<Left>] of the ways
  def expect_same(program, before: [], inside: nil, env: {}, ways: WAYS, is_whole: true, lines: 1..1,
                  may_refuse: false, limit: 120, **, &)
    env = { "INSIDE" => write_beside("inside.rb", inside.to_s), "NATIVE" => native_library, **env }
    command = [ruby, "-W0", *(program.end_with?(".rb") ? [program] : [PROGRAM, program])]
    alone = left_by([*before, *command], env:, limit:, **, &)
    ways.map do |way, options|
      record = rperf_command("record", "-m", "wall", "-o", PROFILE, *options, "--", *command)
      left = left_by([*before, *record], env:, limit:, **, &)
      next left if may_refuse && refused?(left, lines)

      expect_alike(alone, left, way)
      # Each process may have to say something.
      most = program == "forks" && !is_whole ? lines.begin..(lines.end * 10) : lines
      expect([way, left.messages]).to match([way, satisfy("have #{most} lines") { |it| most.cover?(it.size) }])
      expect_whole(left, way) if is_whole
      left
    end
  end

  # The profile has this part of the time of the program's threads.
  def expect_whole(left, what)
    expect([what, left.messages]).to match([what, [/\Arperf: (wrote|.*; it is in) /]])
    total = left.profile[:samples].sum { |_, weight,| weight } / 1e9
    expect([what, total]).to match([what, be >= left.lived * WHOLE])
  end

  # A program that runs this code, and otherwise is as those of the KINDS.
  def program_of(code)
    write_beside("program.rb", <<~RUBY)
      require #{PROGRAM.inspect}
      def (Program).main
        #{code}
      end
      Program.run(:main)
      exit(7)
    RUBY
  end

  private

  # Not in the program's directory, which may be another one for it.
  def write_beside(name, content)
    File.join(File.dirname(directory), name).tap { |path| File.write(path, content) }
  end

  def native_library
    missing = NATIVE.missing
    raise missing if missing

    NATIVE.library
  end

  # What it could not make whole it may have left to the next session.
  def refused?(left, lines)
    nothing = { stdout: "", stderr: "", files: {} }
    left.same.slice(*nothing.keys) == nothing && REFUSALS.include?(left.same[:status]) &&
      lines.cover?(left.messages.size) && left.profile.nil?
  end

  def expect_alike(alone, left, way)
    expect([way, left.same]).to eq([way, alone.same])
    expect([way, left.seconds]).to match([way, be < (alone.seconds * 1.5) + SECONDS])
  end

  def left_by(command, **, &disturbance)
    began = now
    outcome = disturbance ? run(*command, **) { |leader| disturbance.call(program_process, leader) } : run(*command, **)
    seconds = now - began
    figures, lines = outcome.stdout.lines.partition { |line| line.start_with?("pid ", "lived ") }
    profile = profile_left(outcome.messages.join)
    same = same_of(outcome, lines)
    words = figures.grep(/\Alived /).last.to_s.split
    Left.new(same, outcome.messages, words[1].to_f, words[3].to_i, seconds, profile)
  end

  def same_of(outcome, lines)
    { stdout: lines.join, stderr: (outcome.stderr.lines - outcome.messages).join, files: files_left,
      status: [outcome.status.exitstatus, outcome.status.termsig], temporary: Dir.children(temporary_directory) }
  end

  # The program says it in its first line.
  def program_process = Integer(File.read(path_to(".stdout"))[/^pid (\d+)/, 1])

  # Their contents by their names; they are removed.
  def files_left
    names = Dir.children(directory) - [*OURS, PROFILE]
    names.sort.to_h { |name| [name, File.read(path_to(name)).tap { File.delete(path_to(name)) }] }
  end

  # It may be in another place.
  def profile_left(messages)
    path = messages[/; it is in (.+\.pb\.gz)/, 1] || path_to(PROFILE)
    read_profile(path).tap { File.delete(path) } if File.exist?(path)
  end
end
