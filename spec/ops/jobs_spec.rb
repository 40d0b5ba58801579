# frozen_string_literal: true

# Jobs that are enqueued, and those that are performed, are ops, by their classes.
RSpec.describe "Ops of jobs", vm: true do
  include OpPrograms

  describe "of Active Job", skip: Servers.missing("activejob") do
    # An adapter that takes its time, and the jobs.
    active_job = <<~'RUBY'
      require "active_job"
      require "rperf/active_job"
      require "rperf/sidekiq"

      class SlowAdapter
        def enqueue(job) = sleep(0.01)
        def enqueue_at(job, time) = sleep(0.01)
        def enqueue_after_transaction_commit? = false
      end

      ActiveJob::Base.logger = nil
      ActiveJob::Base.queue_adapter = SlowAdapter.new

      class MailJob < ActiveJob::Base
        def perform(*) = sleep(0.01)
      end

      module Shop
        class OrderJob < ActiveJob::Base
          def perform(*) = MailJob.perform_now
        end
      end

      class OwnJob < ActiveJob::Base
        include Rperf::ActiveJobMiddleware

        def perform(*) = MailJob.perform_now
      end

      $nameless = Class.new(ActiveJob::Base) { def perform = 1 }
    RUBY

    define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: active_job, **run) }

    it "have the classes of jobs that are enqueued, at once, for later, and many together" do
      told_of(<<~'RUBY')
        measured do
          2.times { |number| MailJob.perform_later("s3cr3t", number) }
          Shop::OrderJob.set(wait: 60, queue: "s3cr3t").perform_later
          ActiveJob.perform_all_later(MailJob.new("s3cr3t"), MailJob.new)
          ActiveJob.perform_all_later(MailJob.new, Shop::OrderJob.new)
          $nameless.new.enqueue
          [nil, 1, {}, { job: nil }].each do |values|
            ActiveSupport::Notifications.instrument("enqueue.active_job", values) { nil }
            ActiveSupport::Notifications.instrument("enqueue_all.active_job", values) { nil }
          end
        end
      RUBY
      expect(op_calls).to eq("[enqueue] MailJob" => 3, "[enqueue] Shop::OrderJob" => 1,
                             "[enqueue] (several classes)" => 1)
      expect(bytes_of).not_to include("s3cr3t")
      waits = Rperf.load(path_to("p.pb.gz")).ops[:ops].to_h { |it| it.values_at(:name, :blocked_ns) }
      expect(waits["[enqueue] MailJob"]).to be_between(39_000_000, 4_000_000_000)
    end

    it "have the classes of jobs that are performed, within what enqueues them, too" do
      told = told_of(<<~'RUBY')
        value = nil
        measured do
          Shop::OrderJob.perform_now("s3cr3t")
          ActiveJob::Base.queue_adapter = :inline
          MailJob.perform_later
          value = $nameless.perform_now
        end
        puts [value].to_json
      RUBY
      expect(told).to eq([1])
      expect(op_calls).to eq("[perform] Shop::OrderJob" => 1, "[perform] MailJob" => 2, "[enqueue] MailJob" => 1)
      expect(bytes_of).not_to include("s3cr3t")
    end

    it "leave samples to methods where they are performed, also at once as they are enqueued" do
      told_of(<<~'RUBY')
        class BusyJob < ActiveJob::Base
          def perform
            ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
            nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
            Rperf.op("within") { sleep 0.05 }
          end
        end
        ActiveJob::Base.queue_adapter = :inline
        measured(frequency: 1000) { BusyJob.perform_later }
      RUBY
      expect(op_calls).to eq("[enqueue] BusyJob" => 1, "[perform] BusyJob" => 1, "[op] within" => 1)
      sampled = Rperf.load(path_to("p.pb.gz")).top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(sampled["(no op)"]).to be >= 100_000_000
      expect(sampled["[op] within"]).to be >= 40_000_000
      expect(sampled.fetch("[enqueue] BusyJob", 0)).to be < 100_000_000
      expect(sampled.keys).not_to include("[perform] BusyJob")
    end

    [%i[ops], %i[ops requests]].each do |measured|
      it "leave samples to methods where they are jobs of the profile that run as they are enqueued " \
         "(#{measured.join(", ")})" do
        told_of(<<~RUBY)
          class BusyJob < ActiveJob::Base
            include Rperf::ActiveJobMiddleware

            def perform
              ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.2
              nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
              Rperf.op("within") { sleep 0.05 }
              Rperf.label(step: "last") { Rperf.op("labelled") { sleep 0.05 } }
              sleep 0.1
            end
          end
          ActiveJob::Base.queue_adapter = :inline
          # After the job, and within what enqueues it.
          module Slow
            def enqueue(*) = super.tap { sleep(0.05) }
          end
          ActiveJob::QueueAdapters::InlineAdapter.prepend(Slow)
          measured(frequency: 1000, measure: #{measured.inspect}) { BusyJob.perform_later }
        RUBY
        expect(op_calls).to eq("[enqueue] BusyJob" => 1, "[op] within" => 1, "[op] labelled" => 1)
        sampled = Rperf.load(path_to("p.pb.gz")).top(by: :op).to_h { |it| it.values_at(:name, :self) }
        expect(sampled["(no op)"]).to be >= 250_000_000
        expect(sampled.values_at("[op] within", "[op] labelled")).to all(be >= 40_000_000)
        # The time around the job is its own.
        expect(sampled["[enqueue] BusyJob"]).to be_between(40_000_000, 150_000_000)
      end
    end

    it "aren't performed where they are jobs of the profile, whatever else they perform is" do
      told = told_of(<<~'RUBY')
        profile = measured(measure: %i[ops requests]) do
          OwnJob.perform_now
          2.times do
            job = { "class" => "Wrapper", "wrapped" => "Shop::OrderJob" }
            work = -> { ActiveJob::Base.execute(Shop::OrderJob.new.serialize) }
            Rperf::SidekiqMiddleware.new.call(nil, job, "default", &work)
          end
          Rperf::SidekiqMiddleware.new.call(nil, { "class" => "MailJob" }, "default") { MailJob.perform_now }
        end
        puts profile.to_h[:label_sets].filter_map { |labels| labels[:job] }.uniq.sort.to_json
      RUBY
      expect(told).to eq(%w[MailJob OwnJob Shop::OrderJob])
      expect(op_calls).to eq("[perform] MailJob" => 3)
    end

    it "change nothing of what the program gets and raises, and end however they end" do
      alone, inside, after = told_of(<<~'RUBY')
        class Failing < ActiveJob::Base
          def perform(work) = work.call
        end
        class Discarded < Failing
          discard_on(ArgumentError)
        end
        class Refused < MailJob
          before_enqueue { throw :abort }
        end
        cases = {
          value: -> { Failing.new(-> { 1 }).perform_now },
          raised: -> { Failing.new(-> { raise ArgumentError, "mine" }).perform_now },
          discarded: -> { Discarded.new(-> { raise ArgumentError, "mine" }).perform_now.class },
          thrown: -> { catch(:done) { Failing.new(-> { throw :done, 3 }).perform_now } },
          killed: -> { Thread.new { Failing.new(-> { Thread.exit }).perform_now }.join.status },
          arguments: -> { MailJob.new.perform_now(1) },
          refused: -> { Refused.perform_later },
          enqueued: -> { MailJob.perform_later.class }
        }
        # An op that had stayed open would have this one inside of it.
        told = beside_a_session(cases) { Rperf.op("the next") { sleep 0.02 } }
        puts told.to_json
      RUBY
      expect([inside, after].map { |it| it.to_h.transform_values { |value| value.first(2) } })
        .to eq([alone.to_h.transform_values { |value| value.first(2) }] * 2)
      expect(op_calls).to include("[perform] Failing" => 4, "[perform] Discarded" => 1, "[enqueue] MailJob" => 1,
                                  "[op] the next" => 1)
      following = Rperf.load(path_to("p.pb.gz")).ops[:ops].find { |it| it[:name] == "[op] the next" }
      expect(following[:blocked_ns]).to be >= 19_000_000
    end
  end

  describe "of Sidekiq", skip: Servers.missing("sidekiq", "activejob") do
    # Its client, but for the commands of Redis.
    sidekiq = <<~'RUBY'
      require "sidekiq"
      require "sidekiq/testing"
      Sidekiq.configure_client { |config| config.logger = nil }
      Sidekiq.default_configuration.logger = Logger.new(nil)

      class OrderJob
        include Sidekiq::Job
        def perform(*) = nil
      end
    RUBY

    define_method(:told_of) { |program, *options, **run| ops_of(program, *options, head: sidekiq, **run) }

    it "have the classes of jobs that are pushed, one or many at once" do
      told_of(<<~'RUBY')
        measured do
          2.times { OrderJob.perform_async("s3cr3t") }
          OrderJob.perform_in(60, 1)
          OrderJob.set(queue: "s3cr3t").perform_async
          OrderJob.perform_bulk([[1], ["s3cr3t"]])
          Sidekiq::Client.push("class" => "Elsewhere::MailJob", "args" => ["s3cr3t"])
          Sidekiq::Client.push_bulk("class" => OrderJob, "args" => [[1], [2]])
        end
      RUBY
      expect(op_calls).to eq("[enqueue] OrderJob" => 6, "[enqueue] Elsewhere::MailJob" => 1)
      expect(bytes_of).not_to include("s3cr3t")
    end

    it "count jobs of Active Job once" do
      told_of(<<~'RUBY')
        require "active_job"
        ActiveJob::Base.logger = nil
        ActiveJob::Base.queue_adapter = :sidekiq
        class MailJob < ActiveJob::Base
          def perform(*) = nil
        end
        measured do
          MailJob.perform_later("s3cr3t")
          MailJob.set(wait: 60).perform_later
          ActiveJob.perform_all_later(MailJob.new, MailJob.new)
          OrderJob.perform_async
        end
      RUBY
      expect(op_calls).to eq("[enqueue] MailJob" => 3, "[enqueue] OrderJob" => 1)
      expect(bytes_of).not_to include("s3cr3t")
    end

    it "leave samples to methods where a middleware tells of jobs that run as they are pushed" do
      told_of(<<~'RUBY')
        require "rperf/sidekiq"
        class BusyJob
          include Sidekiq::Job
          def perform = sleep(0.2)
        end
        Sidekiq::Testing.inline!
        Sidekiq::Testing.server_middleware { |chain| chain.add(Rperf::SidekiqMiddleware) }
        measured(frequency: 1000) { BusyJob.perform_async }
      RUBY
      expect(op_calls).to eq("[enqueue] BusyJob" => 1)
      sampled = Rperf.load(path_to("p.pb.gz")).top(by: :op).to_h { |it| it.values_at(:name, :self) }
      expect(sampled["(no op)"]).to be >= 180_000_000
      expect(sampled.fetch("[enqueue] BusyJob", 0)).to be < 100_000_000
    end

    it "change nothing of what the program gets and raises" do
      told = told_of(<<~'RUBY')
        cases = {
          value: -> { OrderJob.perform_async.size },
          bulk: -> { OrderJob.perform_bulk([[1], [2]]).map(&:size) },
          class: -> { Sidekiq::Client.push("args" => []) },
          item: -> { Sidekiq::Client.push(1) },
          odd: -> { Sidekiq::Client.push("class" => 1, "args" => []) },
          arguments: -> { Sidekiq::Client.new.push },
          bulk_arguments: -> { Sidekiq::Client.push_bulk("class" => OrderJob, "args" => [1]) }
        }
        puts beside_a_session(cases).to_json
      RUBY
      expect(told.map { |it| it.to_h.transform_values { |value| value.first(2) } }.uniq.size).to eq(1)
      expect(told.first.to_h.transform_values(&:first))
        .to include("value" => "returned", "class" => "ArgumentError", "item" => "ArgumentError")
      expect(op_calls).to eq("[enqueue] OrderJob" => 3)
    end
  end
end
