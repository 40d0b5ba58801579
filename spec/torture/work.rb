# frozen_string_literal: true

require "json"
require "timeout"

# The work of the torture's threads, in random order, all at the same time.
module Work
  # Its methods come and go under the threads that run them.
  class Made
    NAMES = Array.new(20) { |number| :"made_#{number}" }

    def method_missing(name, *) = name.start_with?("made_") ? name : super
    def respond_to_missing?(name, private) = name.start_with?("made_") || super
  end

  CODE = "->(depth, step) { depth.zero? ? [depth].sum : step.call(depth - 1, step) }"
  LOADED = File.expand_path("loaded.rb")
  File.write(LOADED, "def self.loaded = Array.new(50) { |number| number.to_s }.sort\nloaded\n")
  # An overflow's backtrace has 10,000 lines; under GC.stress they take a minute.
  STRESS = Thread::Mutex.new
  private_constant :Made, :CODE, :LOADED, :STRESS

  class << self
    def deep(depth, &block) = depth.zero? ? block.call : deep(depth - 1, &block)

    # A method that is compiled once it has run often, and redefined by then.
    def redefine
      name = Made::NAMES.sample
      make("def #{name}(depth) = depth.zero? ? [#{rand(50)}] : #{name}(depth - 1)")
      3.times { Made.new.send(name, 20) }
    end

    # A method that is gone, and its code perhaps collected, before it returns.
    def undefine
      name = Made::NAMES.sample
      make(<<~RUBY)
        def #{name}(depth)
          Made.send(#{%i[remove_method undef_method].sample.inspect}, :#{name})
          GC.start(full_mark: false)
          depth.times { |number| [number].sum }
        end
      RUBY
      Made.new.send(name, 20)
    rescue NameError
      # Another thread was first.
      make("def #{name}(depth) = depth")
    end

    # Code that nobody holds after it has run.
    def evaluate
      step = eval(CODE, binding, "evaluated_#{rand(50)}.rb") # rubocop:disable Security/Eval -- the text is above
      step.call(40, step)
      compiled = RubyVM::InstructionSequence.load_from_binary(RubyVM::InstructionSequence.compile(CODE).to_binary)
      compiled.eval.call(40, step)
      Class.new { define_method(:short_lived) { [self] } }.new.short_lived
      load(LOADED, true)
    end

    def collect
      STRESS.synchronize do
        GC.stress = true
        3.times { |index| [index, index.to_s] }
        GC.stress = false
      end
      rand(4).zero? ? GC.compact : GC.start
    end

    def raise_and_rescue
      deep(rand(100)) { raise "found" }
    rescue RuntimeError => e
      e.backtrace.size
      catch(:found) { [3, 1, 2].sort_by { |number| number == 2 ? throw(:found) : number } }
    end

    # To the end of the VM's stack, or of a Fiber's.
    def overflow
      down = -> { deep(1_000_000) { nil } }
      STRESS.synchronize { rand(2).zero? ? down.call : Fiber.new(&down).resume }
    rescue SystemStackError
      nil
    end

    def interrupt
      Timeout.timeout(0.0005) { rand(2).zero? ? sleep(0.01) : loop { [1].sum } }
    rescue Timeout::Error
      nil
    end

    def switch_fibers
      numbers = Enumerator.new { |yielder| deep(30) { 5.times { |number| yielder << number } } }
      rand(1..5).times { numbers.next }
      left = Fiber.new { deep(50) { Fiber.yield } }
      left.resume
      left.raise(StopIteration) if rand(2).zero?
    rescue StopIteration
      nil
    end

    def make_threads
      threads = Array.new(3) { Thread.new { deep(rand(200)) { sleep(rand / 1000) } } }
      threads.first.kill
      threads.each(&:join)
    end

    # C methods; some call Ruby code, which calls C.
    def call_c
      words = Array.new(300) { |index| "word #{(index * 7) % 300}" }
      words.sort.each_slice(10).map { |some| some.pack("A8" * some.size) }
      words.sort_by { |word| word[/\d+/].to_i }.group_by(&:size).transform_values { |some| some.grep(/7/).size }
      JSON.parse(JSON.generate(words)).each { |word| word.gsub(/\d/) { |digit| (digit.to_i**20).to_s } }
    end

    # The frames of compiled methods where those of C methods were, with which their memory tells nothing.
    def hide
      [1, "a", :b, 2**70, 1r, /a/, [1]].each do |object|
        object.hash
        count(50)
        [3, 1, 2].sort_by(&:-@)
        count(50)
      end
    end

    def count(turns)
      turn = 0
      turn += 1 while turn < turns
      turn
    end

    # A child that works, and ends in one of the ways in which children end.
    def fork_child
      child = fork do
        # Another thread may have turned it on.
        GC.stress = false
        call_c
        rand(2).zero? ? exit!(0) : Process.kill(:KILL, Process.pid)
      end
      Process.wait(child)
    end

    # Labels that last for less than a tick, in several fibers.
    def label
      return switch_fibers unless defined?(Rperf)

      fibers = Array.new(3) do |number|
        Fiber.new { 5.times { |turn| Rperf.label(fiber: number, turn:) { Fiber.yield(count(100)) } } }
      end
      5.times { fibers.each(&:resume) }
    end

    # Environments that move to the heap while blocks run in them.
    def escape(text = "abc")
      text =~ /b/
      [1].each { |outer| [2].each { |inner| proc { outer + inner } } }
      define_singleton_method(:escaped) { text.hash }
      escaped
    end

    # It throws away YJIT's code.
    def trace
      return call_c unless rand(20).zero?

      calls = 0
      TracePoint.new(:c_call, :return) { calls += 1 }.enable(target_thread: Thread.current) { [2, 1].sort.map(&:to_s) }
    end

    private

    def make(code)
      Made.class_eval(code, "made_#{rand(50)}.rb")
    end
  end

  KINDS = %i[redefine undefine evaluate collect raise_and_rescue overflow interrupt switch_fibers make_threads call_c
             hide fork_child label escape trace].freeze

  def self.any = public_send(KINDS.sample)

  # Beside Ractors. Ruby 3.4 itself stands still for ever if a thread sleeps, or waits for another thread, while
  # another Ractor collects garbage.
  def self.any_without_threads = public_send((KINDS - %i[interrupt make_threads fork_child]).sample)
end
