# frozen_string_literal: true

# Methods of libraries that get ops, in classes that others have changed.
RSpec.describe "Methods of libraries that have ops", vm: true do
  include OpPrograms

  # A library whose class inherits the method, as Active Job's.
  jobs = <<~RUBY
    module ActiveSupport
      module Notifications
        def self.subscribe(*) = nil
        def self.notifier = self
      end
    end
    module ActiveJob
      module Execution
        def perform_now = perform
      end
      class Base
        include Execution
      end
    end
    class ApplicationJob < ActiveJob::Base
      def perform = "performed"
    end
  RUBY

  it "are wrapped where they are inherited, below modules that are prepended to several classes" do
    told = ops_of(<<~RUBY, head: jobs)
      module Noted
        def perform_now = "noted \#{super}"
      end
      ActiveJob::Base.prepend(Noted)
      ApplicationJob.prepend(Noted)
      perform = -> { ApplicationJob.new.perform_now }
      alone = perform.call
      within = nil
      2.times { measured { within = perform.call } }
      puts [alone, within, perform.call].to_json
    RUBY
    expect(told).to eq(["noted noted performed"] * 3)
    expect(op_calls).to eq("[perform] ApplicationJob" => 1)
  end

  it "are counted once by only:, and not where rperf wraps them" do
    told = ops_of(<<~RUBY, head: %(require "net/http"\n#{OpPrograms::HTTP}))
      get = -> { Net::HTTP.new("127.0.0.1", PORT).start { |http| 3.times { http.get("/") } } }
      measured { get.call }
      rows = %w[Net::HTTP#request Net::HTTP#*].map do |name|
        profile = measured(only: name, output: nil) { get.call }
        rows = profile.method_rows.select { it[:name] == "Net::HTTP#request" && it[:calls] }
        rows.map { [it[:calls], it[:path].include?("/rperf/ops/")] }
      end
      puts rows.to_json
    RUBY
    expect(told).to eq([[[3, false]]] * 2)
  end

  it "can be stubbed for all objects of a class" do
    told = ops_of(<<~RUBY)
      require "net/http"
      require "rspec/mocks/standalone"
      get = -> { Net::HTTP.new("127.0.0.1", 1).request(Net::HTTP::Get.new("/")) }
      measured do
        allow_any_instance_of(Net::HTTP).to receive(:request).and_return("stub")
        stubbed = get.call
        RSpec::Mocks.teardown
        puts [stubbed, (get.call rescue $!.class)].to_json
      end
    RUBY
    expect(told).to eq(["stub", "Errno::ECONNREFUSED"])
  end

  it "are Minitest's, too, however often they are wrapped" do
    program = write_file("minitest.rb", <<~RUBY)
      require "minitest"
      2.times { load "#{Commands::ROOT}/lib/rperf/minitest.rb" }
      class Minitest::Test
        alias run_without_log run
        def run = (puts "logged"; run_without_log)
      end
      Class.new(Minitest::Test) { def test_it = assert(true) }
      exit Minitest.run([])
    RUBY
    outcome = run(ruby, "-W0", program)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    expect(outcome.stdout.scan("logged").size).to eq(1)
    expect(outcome.stdout).to include("1 runs, 1 assertions, 0 failures, 0 errors")
  end
end
