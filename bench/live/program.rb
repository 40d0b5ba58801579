# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../support/child"
require_relative "port"

module Live
  # A program of bench/live/child.rb in a process of its own.
  class Program
    CHILD = File.expand_path("child.rb", __dir__)

    attr_reader :path

    # Starts it, yields, and ends it.
    # @param setup [Hash] what it has: busy:, blocked:, session:, nodes:, objects:
    # @param listens [Boolean] whether it has a port
    # @param env [Hash{String => String}] its variables
    # @param how [Hash] as Bench::Child.command takes it: engine:, real_time:
    def self.open(setup = {}, listens: true, env: {}, **how)
      Dir.mktmpdir("rperf-bench") do |directory|
        words = setup.map { |name, value| "#{name}=#{value}" }
        env = env.merge("RPERF_LISTEN" => directory) if listens
        IO.popen([env, *Bench::Child.command(CHILD, *words, **how)], "r+") do |pipe|
          yield new(pipe)
        ensure
          pipe.close_write
        end
      end
    end

    def initialize(pipe)
      @pipe = pipe
      @path = pipe.readline.chomp
    end

    def pid = @pipe.pid

    # Yields a connection to its port.
    def ask(&) = Port.open(@path, &)

    # Begins a command; {#answer} waits for its end.
    def begin(*words) = @pipe.puts(words.join("\t"))

    def answer = JSON.parse(@pipe.readline, symbolize_names: true)

    # Yields during a command that goes on until it is told that this is over.
    # @return [Integer] the longest gap, in ns
    def meanwhile(*words)
      self.begin(*words)
      yield
      @pipe.puts
      answer.fetch(:gap_ns)
    end

    def command(*words)
      self.begin(*words)
      answer
    end
  end
end
