# frozen_string_literal: true

RSpec.describe "labels of fibers", vm: true do
  include LabelTimes

  it "are inherited from the fiber that makes them, and their own from then on" do
    Rperf.start
    Rperf.label(request: "a")
    fiber = Fiber.new do
      Fiber.yield Rperf.labels
      Rperf.label(phase: "b")
      Fiber.yield Rperf.labels
      Rperf.label(request: nil, phase: nil)
      Fiber.yield Rperf.labels
      Rperf.labels
    end
    expect(fiber.resume).to eq(request: "a")
    Rperf.label(request: "changed")
    expect(fiber.resume).to eq(request: "a", phase: "b")
    expect(Rperf.labels).to eq(request: "changed")
    expect([fiber.resume, fiber.resume]).to eq([{}, {}])
  end

  it "don't leak from one to another that runs on the same thread" do
    times = wall do
      fibers = Array.new(3) do |n|
        Fiber.new do
          Rperf.label(fiber: n) do
            5.times do
              spin_wall 0.02, n
              Fiber.yield
            end
          end
        end
      end
      6.times { fibers.each { |fiber| fiber.resume && nil } && spin_wall(0.01) }
    end
    3.times { |n| expect(times[{ fiber: n.to_s }]).to be_nearly(spent[n]) }
    expect(times[nil]).to be_nearly(spent[nil])
  end

  it "don't leak into one that was there before" do
    Rperf.start(mode: :wall)
    old = Fiber.new { loop { spin_wall(0.02) && Fiber.yield(Rperf.labels) } }
    old.resume
    Rperf.label(a: 1) { expect(Array.new(3) { old.resume }.uniq).to eq([{}]) }
    expect(by_labels(Rperf.stop)[nil]).to be > 70_000_000
  end

  it "are those of where an Enumerator was first asked for an element" do
    numbers = Enumerator.new { |yielder| loop { spin_wall(0.03, Rperf.labels) && yielder.yield(Rperf.labels) } }
    times = wall do
      Rperf.label(request: "a") { expect(numbers.next).to eq(request: "a") }
      expect(numbers.next).to eq(request: "a")
      expect(Rperf.labels).to eq({})
      Rperf.label(request: "b") { expect(numbers.take(1)).to eq([{ request: "b" }]) }
    end
    %w[a b].each { |request| expect(times[{ request: }]).to be_nearly(spent[{ request: }]) }
  end

  # Stacks are taken at ticks, and become samples later: after a switch still with the labels before it.
  it "have their shares where fibers switch more often than the timer ticks", alone: true do
    data = Rperf.start(mode: :cpu, frequency: 2000) do
      fibers = { short: 0.0001, long: 0.0004 }.map do |name, seconds|
        Fiber.new { Rperf.label(turn: name) { loop { spin(seconds) || Fiber.yield } } }
      end
      2000.times { fibers.each(&:resume) }
    end
    short, long = by_labels(data).values_at({ turn: "short" }, { turn: "long" })
    # 0.8, or half if they were those after it.
    expect(long / (short + long).to_f).to be_between(0.6, 0.95)
  end

  it "are right with a Fiber scheduler, blocked time included" do
    times = wall do
      FiberScheduler.run do
        3.times do |n|
          Fiber.schedule do
            Rperf.label(task: n) do
              4.times { spin_wall(0.01, n) && sleep(0.001) }
              # A task that a task starts is part of it.
              Fiber.schedule { spin_wall(0.03, n) && sleep(0.001) && spin_wall(0.03, n) }
            end
            spin_wall 0.02
          end
        end
      end
    end
    3.times { |n| expect(times[{ task: n.to_s }]).to be_nearly(spent[n]) }
    expect(times.keys - [nil]).to match_array(Array.new(3) { |n| { task: n.to_s } })
  end

  # For samples to tell which fiber they are of.
  def task0(&) = yield
  def task1(&) = yield
  def task2(&) = yield

  it "are on all samples of their fiber, and on no other's" do
    data = Rperf.start(mode: :wall, frequency: 5000) do
      FiberScheduler.run do
        3.times do |n|
          work = -> { 20.times { spin_wall(0.002) && sleep(0.001) } }
          Fiber.schedule { Rperf.label(task: n) { send(:"task#{n}", &work) } }
        end
      end
    end
    expect_own_labels(data, :task, { "task0" => "0", "task1" => "1", "task2" => "2" })
  end

  # A tick can come after the switch, and before anybody knows of it.
  it "are on all samples of their fiber also where fibers do nothing but switch" do
    data = Rperf.start(mode: :wall, frequency: 10_000) do
      fibers = Array.new(3) do |n|
        Fiber.new { Rperf.label(task: n) { send(:"task#{n}") { loop { Fiber.yield } } } }
      end
      50_000.times { fibers.each(&:resume) }
    end
    expect_own_labels(data, :task, { "task0" => "0", "task1" => "1", "task2" => "2" })
    unlabelled = data[:samples].reject { |frames,| frames.any? { |_, name| name.match?(/task|label/) } }
    expect(unlabelled.map { |sample| label_of(data, :task, sample) }.uniq).to eq([nil])
  end

  # The VM says nothing of a switch in which an interrupt comes. In a program of its own: with short time slices
  # Timeout's thread gets the GVL soon.
  it "are their own after a switch that a Timeout has ended" do
    write_file("program.rb", <<~RUBY)
      require "rperf"
      require "timeout"
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def task0
        limit = now + 0.0005
        nil while now < limit
      end

      late = Class.new(StandardError)
      another = -> { Fiber.new { Rperf.label(other: 1) { loop { Fiber.yield } } } }
      interrupts = 0
      Rperf.start(mode: :wall, frequency: 10_000, output: "p.pb.gz") do
        other = another.call
        200.times do |round|
          Timeout.timeout(0.0005 + (round * 0.000001), late) { loop { other.resume } }
        rescue late
          interrupts += 1
          other = another.call unless other.alive?
          task0
        end
      end
      print interrupts
    RUBY
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", path_to("program.rb"), env: { "RUBY_THREAD_TIMESLICE" => "10" })
    expect([outcome.stdout, outcome.stderr]).to eq(["200", ""])
    data = read_profile(path_to("p.pb.gz"))
    expect(labels_of(data, :other, "task0")).to eq([nil])
  end

  it "are theirs also in a session whose sections they begin themselves" do
    Rperf.start(defer: true, mode: :wall)
    Rperf.label(request: "a") { Fiber.new { Rperf.profile { spin_wall 0.3 } }.resume }
    expect(labels_of(Rperf.stop, :request, "spin_wall")).to eq(["a"])
    Rperf.start(defer: true, mode: :wall)
    thread = Thread.new { Rperf.label(a: 1) { Fiber.new { Rperf.profile(b: 2) { Rperf.labels } }.resume } }
    expect(thread.value).to eq(a: 1, b: 2)
  end

  it "are right where a new fiber blocks at once" do
    times = wall { Rperf.label(page: 1) { Enumerator.new { |pages| pages << sleep(0.05) }.next } }
    expect(times[{ page: "1" }]).to be > 45_000_000
  end
end
