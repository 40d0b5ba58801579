# frozen_string_literal: true

require "json"
require_relative "../../bench/support/pprof"
require_relative "../support/compilers"

# A wait is known by its control frames if its stack is that of the last one, and then the stack isn't taken again.
# Stacks that differ in a line, in a method or in its callers are told apart.
RSpec.describe "waits that follow each other", vm: true do
  program = <<~'RUBY'
    require "rperf"
    require "json"

    # Waits at several stacks that have most in common. Each notes its stack as Ruby tells it, and how long it took.
    class Waits
      LEAVES = { sleep: [Kernel, 0.004], select: [IO, nil, nil, nil, 0.004] }.freeze

      def initialize
        @told = Hash.new(0)
      end

      attr_reader :told

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

      def rest(leaf = :sleep)
        receiver, *arguments = LEAVES.fetch(leaf)
        # Methods of C have their caller's line.
        lines = caller_locations(0).filter_map { |it| it.lineno if it.label.match?(/Waits|<main>/) }
        started = now
        lines[0] += 2; receiver.public_send(leaf, *arguments)
        @told[[leaf, *lines]] += now - started
      end

      def one = rest
      alias other one
      define_method(:defined) { rest }
      define_method(:defined_again, instance_method(:defined))
      def deep(turns) = turns.zero? ? rest : deep(turns - 1)
      def with_match = "x" =~ /x/ && rest
      def in_block = [1].each { rest }
      def in_two_blocks = [1].each { [1].each { rest } }
      def hand_on = yield
      def with_self = Object.new.instance_exec(self) { |waits| waits.rest }

      def all(turns)
        turns.times { one }
        turns.times { other }
        turns.times { one }
        turns.times { defined }
        turns.times { defined_again }
        turns.times { |turn| deep(turn % 3) }
        turns.times { with_match }
        turns.times { in_block }
        turns.times { in_two_blocks }
        turns.times { hand_on { one } }
        turns.times { hand_on { hand_on { one } } }
        turns.times { with_self }
        turns.times do |turn|
          if turn.even?
            one
          else
            one
          end
          GC.start if turn == 3
        end
        turns.times { Fiber.new { one }.resume }
        turns.times { |turn| rest(turn < 3 ? :sleep : :select) }
      end
    end

    waits = Waits.new
    Rperf.start(mode: :wall, frequency: 1000)
    2.times do
      waits.all(6)
      GC.compact if GC.respond_to?(:compact)
    end
    profile = Rperf.stop
    Rperf.save(ARGV[0], profile)
    puts JSON.generate([profile[:known_waits], waits.told.transform_keys(&:to_json)])
  RUBY

  # ns without the GVL, by the stack: the method of C that waits, and the lines in the program.
  def blocked(file, program)
    Bench::Pprof.read(file).samples.each_with_object(Hash.new(0)) do |sample, sums|
      next unless sample.frames.first.function == "[GVL blocked]"

      lines = sample.frames.filter_map { |frame| frame.line if frame.file == program }
      sums[[sample.frames[1].function[/\w+\z/], *lines]] += sample.values.fetch("wall")
    end
  end

  { "interpreted" => [] }.merge(Compilers::FLAGS.transform_values { |flag| [flag, "#{flag}-call-threshold=2"] })
                         .each do |name, flags|
    it "each have the time that they took: #{name}" do
      script = write_file("waits.rb", program)
      outcome = run(ruby, *flags, "-I#{Commands::ROOT}/lib", script, path_to("p.pb.gz"))
      expect([outcome.status, outcome.stderr]).to match([be_success, ""])
      known, told = JSON.parse(outcome.stdout)
      told.transform_keys! { |stack| JSON.parse(stack) }
      measured = blocked(path_to("p.pb.gz"), script)
      expect(told.size).to be >= 19
      near = told.transform_values { |ns| be_within(0.4 * ns).of(ns) }
      expect(measured.select { |lines, ns| told.key?(lines) || ns > 2_000_000 }).to match(near)
      # Of 216 waits. ZJIT of Ruby 4.1 leaves control frames as they were.
      are_frames_late = name == "ZJIT" && RUBY_VERSION >= "4.1"
      expect(known).to are_frames_late ? eq(0) : be > 60
    end
  end
end
