# frozen_string_literal: true

# Starts and stops so many sessions, one kind after the other, uses what they give, and asks the port. What is lost by
# that, or read where nothing is, is found by check_with_sanitizer (bin/support/checkers.sh), which runs this.
require "rperf"
require "socket"
require "tmpdir"

KINDS = [
  { mode: :wall }, { mode: :cpu, frequency: 5_000 }, { mode: :wall, capture: :safepoint },
  { mode: :wall, signal: false }, { mode: :cpu, measure: :alloc }, { mode: :wall, aggregate: false },
  { mode: :trace }, { mode: :trace, calls: :all }, { mode: :trace, only: "Work#sorted" }
].freeze
FORMATS = %w[pb.gz txt json collapsed html].freeze
QUESTIONS = %w[/v1/hello /v1/stacks /v1/stacks?fibers=1 /v1/memory /v1/memory?objects=1 /v1/snapshot
               /v1/profile?seconds=0 /v1/nothing].freeze

# What is profiled.
class Work
  def sorted(size) = Array.new(size) { |i| (i * 7_919 % 301).to_s }.sort

  def do(turn)
    Rperf.label(turn: turn.to_s) { sorted(300) }
    Thread.new { Fiber.new { sorted(50) }.resume }.join
    too_deep if (turn % 40).zero?
    in_ractor if turn % 100 == 7
    GC.start if (turn % 50).zero?
  end

  private

  def in_ractor
    ractor = Ractor.new { Array.new(1_000, &:to_s).sort.size }
    ractor.respond_to?(:value) ? ractor.value : ractor.take
  end

  def too_deep
    too_deep
  rescue SystemStackError
    sorted(5)
  end
end

def ask(socket, question)
  UNIXSocket.open(socket) do |port|
    port.write("GET #{question} HTTP/1.1\r\nConnection: close\r\n\r\n")
    port.read
  end
end

def use(profile, directory, turn)
  profile.top(limit: 5)
  Rperf.save(File.join(directory, "profile.#{FORMATS[turn / 20 % FORMATS.size]}"), profile) if (turn % 20).zero?
end

# It never frees what was its parent's: nobody is to ask what it has lost.
def as_child
  Work.new.do(1)
  Rperf.stop
ensure
  exit!
end

def once(turn, directory, socket)
  kind = KINDS[turn % KINDS.size]
  Rperf.start(**kind)
  Work.new.do(turn)
  ask(socket, QUESTIONS[turn % QUESTIONS.size]) if (turn % 5).zero?
  Rperf.snapshot if (turn % 10).zero? && kind[:aggregate] != false
  Process.wait(fork { as_child }) if turn % 100 == 9
  use(Rperf.stop, directory, turn)
end

Dir.mktmpdir do |directory|
  socket = Rperf.listen(directory:, helper: true)
  Integer(ARGV.fetch(0)).times { |turn| once(turn, directory, socket) }
end
GC.start
