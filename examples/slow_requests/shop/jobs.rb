# frozen_string_literal: true

require "rperf/sidekiq"

class Shop
  # Jobs run one after another in a thread, with the middleware that Sidekiq's would have.
  module Jobs
    PAUSE = 0.6

    module_function

    def start(database)
      jobs = [MailJob.new(database), MailJob.new(database), ExportJob.new(Data.products), MailJob.new(database)].cycle
      Thread.new do
        Thread.current.name = "jobs"
        middleware = Rperf::SidekiqMiddleware.new
        jobs.each do |job|
          sleep(PAUSE)
          middleware.call(job, { "class" => job.class.name }, "default") { job.perform }
        end
      end
    end
  end

  # Writes to customers.
  class MailJob
    def initialize(database)
      @database = database
    end

    def perform
      5.times { |id| @database.query("SELECT * FROM orders WHERE id = ?", id) }
    end
  end

  # All products for other shops, each once.
  class ExportJob
    def initialize(products)
      @products = products
    end

    def perform = rows.join("\n")

    private

    def rows
      @products.each_with_object([]) do |product, rows|
        row = "#{product[:description]},#{product[:price]}"
        rows << row unless rows.include?(row)
      end
    end
  end
end
