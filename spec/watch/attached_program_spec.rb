# frozen_string_literal: true

# A program that does all kinds of things with threads while clients are attached: one has a session, and others come,
# watch it, ask for stacks and leave.
RSpec.describe "A program to which clients are attached", vm: true do
  include Ports

  # Each returns what came of it; the number is what is to come.
  deeds = <<~'RUBY'
    require "json"
    require "timeout"
    Warning[:experimental] = false
    path = Rperf.listen
    puts path
    sleep 0.01 until File.exist?("go")
    def work = 100.times(&:to_s)
    def work_on = loop { work && Thread.pass }
    raised = lambda do
      arrived = 0
      100.times do
        is_ready = false
        thread = Thread.new do
          is_ready = true
          work_on
        rescue RuntimeError
          arrived += 1
        end
        thread.report_on_exception = false
        Thread.pass until is_ready
        thread.raise("x")
        thread.join
      end
      arrived
    end
    timed_out = lambda do
      threads = Array.new(4) do |number|
        Thread.new do
          Array.new(10) { Timeout.timeout(0.005) { number.even? ? sleep : work_on } rescue :out }.count(:out)
        end
      end
      threads.sum(&:value)
    end
    every_ms = lambda do
      threads = Array.new(300) do |number|
        sleep 0.001
        Thread.new { work && number }
      end
      threads.sum(&:value)
    end
    killed = lambda do
      Array.new(50) { Thread.new { work_on }.tap { Thread.pass }.tap(&:kill).join }.count(&:alive?)
    end
    # They make no garbage: Ruby 3.4 itself may stand still if a Ractor collects it while threads of others wait.
    in_ractors = lambda do
      ractors = Array.new(2) { Ractor.new { (1..300_000).sum { |number| number & 1 } } }
      ractors.map { |it| it.respond_to?(:value) ? it.value : it.take }
    end
    forked = -> { Array.new(10) { Process.wait2(fork { fork { work }; work }).last.success? }.uniq }
    # Before Timeout makes its thread, which never ends.
    joined = lambda do
      Array.new(5) { Thread.new { sleep 0.01 } }
      (Thread.list - [Thread.current]).each(&:join).size > 4
    end
    names = { joined:, raised:, timed_out:, every_ms:, killed:, forked:, in_ractors: }
    results = names.to_h { |name, deed| [name, deed.call] }
    File.write("results.new", JSON.generate(results))
    File.rename("results.new", "results")
    sleep 0.01 until File.exist?("end")
    exit!(3)
  RUBY

  # What clients do until the program is ready.
  def come_and_go(path)
    until File.exist?(path_to("results"))
      ask(path, "/v1/stacks")
      %w[/v1/delta?wait_ms=9 /v1/profile?seconds=9].each do |request|
        UNIXSocket.open(path) { |port| port.write("GET #{request} HTTP/1.1\r\n\r\n") && port.wait_readable(0.03) }
      end
    end
  end

  # A session that goes on; the block is called meanwhile.
  def with_session(path)
    UNIXSocket.open(path) do |port|
      port.write("POST /v1/session?mode=wall&frequency=1000 HTTP/1.1\r\n\r\n")
      port.timeout = 20
      expect(port.readpartial(1000)).to start_with("HTTP/1.1 200")
      yield port
    end
  end

  # With M:N threads, Ruby 4.0.4 itself stands still when threads end and Ractors run (docs/internals/ractors.md).
  with_many_to_many = RUBY_VERSION.start_with?("3.") ? [{ "RUBY_MN_THREADS" => "1" }] : []
  [{}, *with_many_to_many].each do |env|
    it "does what it does without them#{" with M:N threads" unless env.empty?}" do
      listening(deeds, env:) do |program|
        path = program.lines.first
        with_session(path) do |port|
          write_file("go", "")
          2.times.map { Thread.new { come_and_go(path) } }.each(&:join)
          results = JSON.parse(File.read(path_to("results")))
          expected = { "raised" => 100, "timed_out" => 40, "every_ms" => 44_850, "killed" => 0, "forked" => [true],
                       "joined" => true, "in_ractors" => [150_000] * 2 }
          expect(results).to eq(expected.slice(*results.keys))
          expect(ask(path).last).to include("live" => true)
          # It ends without a word: the client sees the end of the connection.
          write_file("end", "")
          expect(port.read).to eq("")
        end
      end
    end
  end
end
