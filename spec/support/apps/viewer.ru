# frozen_string_literal: true

# The app of rack.ru below the viewer, which those may see who send the key.

require_relative "tasks"
require "rperf/middleware"
require "rperf/viewer"

use Rperf::Viewer, auth: ->(env) { env["HTTP_X_KEY"] == "secret" }
use Rperf::Middleware

run(lambda do |env|
  task = env["PATH_INFO"][%r{\A/(\w+)/\d+\z}, 1]
  label = "#{env["REQUEST_METHOD"]} /#{task}/:id"
  Tasks.measure(-> { label }) { Tasks.public_send(task) }
  [200, {}, [Rperf.labels[:endpoint]]]
end)
