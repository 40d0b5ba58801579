# frozen_string_literal: true

# /compute/1 and the like, with nothing but Rack.

require_relative "tasks"
require "rperf/middleware"

use Rperf::Middleware

run(lambda do |env|
  task = env["PATH_INFO"][%r{\A/(\w+)/\d+\z}, 1]
  label = "#{env["REQUEST_METHOD"]} /#{task}/:id"
  Tasks.measure(-> { label }) { Tasks.public_send(task) }
  [200, { "process-id" => Process.pid.to_s }, [Rperf.labels[:endpoint]]]
end)
