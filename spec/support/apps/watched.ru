# frozen_string_literal: true

# /compute/1 and the like, and who asks for /threads gets the number of threads of the worker.

require_relative "tasks"
require "rperf/middleware"

use Rperf::Middleware

run(lambda do |env|
  task = env["PATH_INFO"][%r{\A/(\w+)}, 1]
  Tasks.public_send(task) unless task == "threads"
  [200, { "process-id" => Process.pid.to_s }, [Thread.list.size.to_s]]
end)
