# frozen_string_literal: true

# Clients that come and go 20 times a second, and leave in the middle of whatever they have asked for. Some seconds, or
# ten minutes with RPERF_LONG=1 (bin/test --long).
RSpec.describe "A port whose clients come and go", if: File.exist?("/proc/self/fd") do
  include Ports

  requests = ["GET /v1/hello", "GET /v1/stacks", "POST /v1/session", "GET /v1/profile?seconds=0.1", "GET /v1/snapshot",
              "GET /v1/delta", "GET /v1/st"]

  # Asks, and leaves after a while, be there an answer or not.
  def come_and_go(path, request, seconds)
    UNIXSocket.open(path) do |port|
      port.write(request.end_with?("/v1/st") ? request : "#{request} HTTP/1.1\r\n\r\n")
      port.readpartial(1 << 16) if port.wait_readable(seconds)
    end
  rescue SystemCallError, EOFError
    nil # The port has enough clients.
  end

  it "goes on, and nothing of them is left" do
    seconds = ENV["RPERF_LONG"] == "1" ? 600 : 4
    code = <<~'RUBY'
      def work(depth = 9) = depth.zero? ? 50.times.map(&:to_s) : work(depth - 1)
      3.times { Thread.new { loop { rand(200).times { work }; Thread.new { work }.join; sleep(rand * 0.3) } } }
      puts Rperf.listen
      sleep
    RUBY
    listening(code) do |program|
      path = program.lines.first
      count = -> { Dir.children("/proc/#{program.pid}/fd").size }
      ask(path, "/v1/stacks")
      before = count.call
      over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      clients = Array.new(4) do |number|
        Thread.new(Random.new(number)) do |random|
          while Process.clock_gettime(Process::CLOCK_MONOTONIC) < over
            come_and_go(path, requests.sample(random:), random.rand(0.3))
            sleep(0.05)
          end
        end
      end
      clients.each(&:join)
      wait_until("end of all sessions") { ask(path).last.values_at("session", "clients") == [nil, 1] }
      # Its threads start others for a moment.
      wait_until("its own threads only") do
        answer = ask(path, "/v1/stacks").last
        answer["source"] == "vm" && answer["threads"].size == 4
      end
      wait_until("end of the connections") { count.call <= before }
    end
  end
end
