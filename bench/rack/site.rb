# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../support/child"

# The Rack application in a process of its own, and the load on it from another.
class Site
  SERVER = File.expand_path("server.rb", __dir__)
  CLIENT = File.expand_path("client.rb", __dir__)
  CONNECTIONS = 4

  # Why it can't be had; nil if it can.
  def self.missing
    @missing ||= open { "" }
    @missing.empty? ? nil : @missing
  rescue EOFError
    @missing = "the gems rack, rackup and webrick can't be loaded"
  end

  # Starts the server, yields, and ends it.
  # @param engine [String, nil] one of {Bench::Engines}
  # @param env [Hash{String => String}] variables of the server
  def self.open(engine: nil, env: {})
    IO.popen([env, *Bench::Child.command(SERVER, engine:)], "r+", err: File::NULL) do |pipe|
      yield new(pipe)
    ensure
      pipe.close_write
    end
  end

  def initialize(pipe)
    @pipe = pipe
    @port = Integer(@pipe.readline)
  end

  # @param limit [String] a number of requests, or seconds ("60s")
  # @return [Hash] wall_ns, requests, p50_ns, p99_ns
  def load(limit) = Bench::Child.json(CLIENT, @port, CONNECTIONS, limit)

  # @return [Hash] the answer
  def command(*words)
    @pipe.puts(words.join("\t"))
    JSON.parse(@pipe.readline, symbolize_names: true)
  end
end
