# frozen_string_literal: true

# The timer's signal and SIGURG are rperf's own business: neither reaches a program that a profiled one starts or
# becomes, nor a handler that the program has for itself.
RSpec.describe "rperf's signals", vm: true do
  # Both programs together start this number of others.
  children = Commands.times(5_000)

  def run_program(text, *arguments, flags: [], env: {})
    command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", write_file("program.rb", text)]
    outcome = run(*command, *arguments.map(&:to_s), env:, limit: 3 * Commands::TIME_LIMIT)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    outcome.stdout
  end

  head = <<~RUBY
    require "rperf"
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    # As long as it takes for a tick to come, or a little less, or more.
    def spin(limit)
      deadline = now + rand(limit)
      nil while now < deadline
    end

    OPTIONS = { mode: :wall, frequency: 10_000, capture: :tick }
  RUBY

  it "never end a program that is started right after a tick" do
    expect(run_program(<<~RUBY, children / 2)).to eq("[]")
      #{head}
      WAYS = [
        -> { Process.wait2(spawn("/bin/true")).last },
        -> { system("/bin/true") && Process.last_status },
        -> { `/bin/true` && Process.last_status },
        -> { IO.popen("/bin/true", &:read) && Process.last_status },
        -> { Process.wait2(fork { exec("/bin/true") }).last },
        -> { Process.detach(spawn("/bin/true", unsetenv_others: true, pgroup: true)).value }
      ]
      Rperf.start(**OPTIONS)
      ended = Array.new(ARGV[0].to_i) do |number|
        spin(200_000)
        WAYS[number % WAYS.size].call
      end
      Rperf.stop
      print ended.reject(&:success?)
    RUBY
  end

  it "never end a program that a profiled one becomes right after a tick" do
    expect(run_program(<<~RUBY, children / 2)).to eq("[]")
      #{head}
      def become_another
        Rperf.start(**OPTIONS)
        spin(3_000_000)
        rand(4).zero? ? Thread.new { exec("/bin/true") }.join : exec("/bin/true")
      end

      ended = Array.new(ARGV[0].to_i) do |number|
        # Some of the parents have a session themselves.
        Rperf.start(**OPTIONS) if (number % 100) == 50
        Rperf.stop if (number % 100).zero?
        Process.wait2(fork { become_another }).last
      end
      print ended.reject(&:success?)
    RUBY
  end

  it "are not blocked, ignored or pending in such programs", if: RUBY_PLATFORM.include?("linux") do
    program = <<~RUBY
      #{head}
      LOOK = ["grep", "-E", "^(SigPnd|ShdPnd|SigBlk|SigIgn):", "/proc/self/status"]
      Rperf.start(**OPTIONS) if ARGV[0] == "true"
      20.times do
        spin(200_000)
        system(*LOOK)
        spin(200_000)
        IO.popen(LOOK) { |io| print io.read }
        Process.wait(fork { exec(*LOOK) })
      end
      $stdout.flush
      exec(*LOOK)
    RUBY
    profiled, alone = [true, false].map { |profiled| run_program(program, profiled) }
    expect(profiled).to eq(alone)
    expect(alone.lines.size).to eq(61 * 4)
  end

  describe "and a program with a handler of its own for SIGURG" do
    # Counts the signals that the program gets, and sends twenty.
    counting = <<~RUBY
      #{head}
      $received = 0
      HANDLER = proc { $received += 1 }

      def send_signals
        before = $received
        20.times do |number|
          spin(1_000_000)
          number.even? ? Process.kill(:URG, Process.pid) : system("kill -URG \#{Process.pid}")
          deadline = now + 10_000_000_000
          nil while $received == before + number && now < deadline
        end
        spin(50_000_000)
        print $received - before, " "
      end
    RUBY

    it "leave it its own signals, when it is there after the start" do
      expect(run_program(<<~RUBY)).to eq("20 20 20 true")
        #{counting}
        Rperf.start(**OPTIONS)
        trap(:URG, HANDLER)
        # For one of rperf's that is on its way just then.
        sleep(0.05)
        send_signals
        data = Rperf.stop
        send_signals
        # Another session, with the handler there before.
        Rperf.start(**OPTIONS, capture: nil)
        send_signals
        print data[:samples].any? && Rperf.stop[:samples].any?
      RUBY
    end

    it "don't fit beside it, when it is there before capture: :tick" do
      expect(run_program(<<~RUBY)).to match(/\Acan't start .* capture: :tick: .*SIGURG.* 20 \z/)
        #{counting}
        trap(:URG, HANDLER)
        begin
          Rperf.start(**OPTIONS)
        rescue Rperf::Error => e
          print e.message, " "
        end
        send_signals
      RUBY
    end

    it "reach it only if they are on their way as it comes", alone: true do
      at_once, late = run_program(<<~RUBY).split.map(&:to_i)
        #{counting}
        at_once = late = 0
        200.times do
          Rperf.start(**OPTIONS)
          spin(300_000)
          trap(:URG, HANDLER)
          sleep(0.002)
          at_once, $received = at_once + $received, 0
          spin(2_000_000)
          Rperf.stop
          trap(:URG, :DEFAULT)
          late, $received = late + $received, 0
        end
        print at_once, " ", late
      RUBY
      expect(late).to eq(0)
      expect(at_once).to be < 60
    end
  end
end
