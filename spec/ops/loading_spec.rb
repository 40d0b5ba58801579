# frozen_string_literal: true

# When libraries get what names their ops: as a session begins that measures ops, or as they are loaded while it runs.
RSpec.describe "Libraries whose waits are ops", vm: true do
  include OpPrograms

  # Whether requests of Net::HTTP are wrapped, and how many TracePoints are on.
  probes = <<~'RUBY'
    def wrapped?(library = Net::HTTP, method = :request)
      library.instance_method(method).source_location.first.include?("/rperf/ops/")
    end
    def watches = ObjectSpace.each_object(TracePoint).count(&:enabled?)
  RUBY

  define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: probes, **run) }

  it "are left alone without such a session" do
    told = told_of(<<~'RUBY')
      require "net/http"
      Rperf.start(mode: :wall) { eval("1") }
      puts [wrapped?, watches].to_json
    RUBY
    expect(told).to eq([false, 0])
  end

  it "are found as the session begins, or by the files that are loaded after them" do
    told = told_of(<<~'RUBY')
      states = []
      measured do
        states << watches
        require "net/http"
        states << wrapped?
      end
      states << watches << wrapped?
      measured { states << watches }
      puts [*states, watches].to_json
    RUBY
    # Others may come still.
    expect(told).to eq([1, true, 0, true, 1, 0])
  end

  it "are found however their code is loaded" do
    write_file("sequel.rb",
               "module Sequel\n  class Database\n    def log_connection_yield(sql, conn) = yield\n  end\nend\n")
    write_file("next.rb", "")
    told = told_of(<<~'RUBY')
      # As bootsnap has it: code that was compiled before.
      class << RubyVM::InstructionSequence
        def load_iseq(path)
          load_from_binary(compile_file(path).to_binary) if path.end_with?("sequel.rb", "next.rb")
        end
      end
      measured do
        require "./sequel"
        require "./next"
      end
      measured(output: nil) do
        Object.class_eval("class RedisClient; class Middlewares; end; def self.register(it) = Middlewares.include(it); end")
        eval("nil")
      end
      puts [wrapped?(Sequel::Database, :log_connection_yield), RedisClient::Middlewares.ancestors[1].to_s].to_json
    RUBY
    expect(told).to match([true, /Rperf/])
  end

  it "aren't looked for any more, once all are there" do
    told = told_of(<<~'RUBY')
      require "net/http"
      libraries = <<~LIBRARIES
        module ActiveSupport; module Notifications; def self.subscribe(*) = nil; def self.notifier = self; end; end
        module ActionMailer; class Base; def self.deliver_mail(mail) = yield; end; end
        class RedisClient; class Middlewares; end; def self.register(it) = Middlewares.include(it); end
        module Sequel; class Database; def log_connection_yield(sql, conn) = yield; end; end
        class ConnectionPool; class TimedStack; def pop = nil; def empty? = false; end; end
        module Tilt; class Template; def render(*) = nil; end; end
        module ActiveJob; class Base; def perform_now = nil; end; end
        module Sidekiq; class Client; def push(item) = nil; def push_bulk(items) = nil; end; end
        module ActiveRecord
          module ConnectionAdapters
            class ConnectionPool; class Queue; private def wait_poll(timeout) = nil; end; end
          end
        end
      LIBRARIES
      states = []
      measured do
        eval(libraries)
        states << watches
        eval("nil")
        states << watches
      end
      measured { states << watches }
      puts states.to_json
    RUBY
    expect(told).to eq([1, 0, 0])
  end

  it "aren't loaded for it" do
    write_file("library.rb", "puts 'loaded'\n")
    told = told_of(<<~'RUBY')
      module Net; autoload :HTTP, "./library.rb"; end
      module ActiveSupport; autoload :Notifications, "./library.rb"; end
      autoload :RedisClient, "./library.rb"
      autoload :Sequel, "./library.rb"
      autoload :Tilt, "./library.rb"
      module ActiveJob; autoload :Base, "./library.rb"; end
      module Sidekiq; autoload :Client, "./library.rb"; end
      def Object.const_missing(name) = puts("missed")
      measured { eval("nil") }
      puts [watches].to_json
    RUBY
    expect(told).to eq([0])
  end

  it "may be something else of the same name" do
    told = told_of(<<~'RUBY')
      Net = 1
      Sequel = BasicObject.new
      RedisClient = Class.new { def self.register(*) = raise("called") }
      module ActiveSupport; Notifications = Object.new; end
      module ActionMailer; Base = nil; end
      module Tilt; Template = Module.new; end
      module ActiveJob; class Base; end; end
      module Sidekiq; class Client; def push(item) = nil; end; end
      measured { eval("nil") }
      puts [watches].to_json
    RUBY
    expect(told).to eq([0])
  end

  it "that refuse it go without, with a line, and the others don't" do
    told = told_of(<<~'RUBY', stderr: /\Arperf: ops of a library are missing: can't modify frozen .*\n\z/)
      require "net/http"
      Net::HTTP.freeze
      module Sequel; class Database; def log_connection_yield(sql, conn) = yield; end; end
      class RedisClient; class Middlewares; end; def self.register(*) = raise("no"); end
      2.times { measured { eval("nil") } }
      puts [wrapped?(Sequel::Database, :log_connection_yield), watches].to_json
    RUBY
    expect(told).to eq([true, 0])
  end

  it "are looked for by no child that isn't profiled, and by those that are" do
    told = told_of(<<~'RUBY')
      states = [false, true].map do |inherit|
        reader, writer = IO.pipe
        measured(inherit:) do
          pid = fork do
            require "net/http"
            writer.puts [watches, wrapped?].to_json
          end
          Process.wait(pid)
        end
        JSON.parse(reader.gets)
      end
      puts [*states, watches].to_json
    RUBY
    expect(told).to eq([[0, false], [1, true], 0])
  end

  it "are looked for by the main Ractor only, whatever others compile" do
    told = told_of(<<~'RUBY', "-W:no-experimental")
      value = nil
      measured do
        ractor = Ractor.new { Array.new(20) { eval("1 + 1") }.sum }
        value = ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
      puts [value].to_json
    RUBY
    expect(told).to eq([40])
  end

  it "cost no compiled code", skip: ("needs YJIT" if RbConfig::CONFIG["YJIT_SUPPORT"] == "no") do
    kept, lost = told_of(<<~'RUBY', "--yjit", "--yjit-call-threshold=5")
      def double(number) = number * 2
      def work = 100.times { |it| double(it) }
      # What of it has to be compiled again after the block.
      def again
        500.times { work }
        yield
        before = RubyVM::YJIT.runtime_stats[:compiled_iseq_entry]
        100.times { work }
        RubyVM::YJIT.runtime_stats[:compiled_iseq_entry] - before
      end
      3.times { again { RubyVM::YJIT.runtime_stats } }
      kept = again { Rperf.start(mode: :wall, measure: :ops) }
      Rperf.stop
      puts [kept, again { TracePoint.new(:line) { nil }.enable { nil } }].to_json
    RUBY
    expect(kept).to eq(0)
    expect(lost).to be > 0
  end
end
