# frozen_string_literal: true

# Routes of Sinatra, at the root and mounted.

require_relative "tasks"
require "sinatra/base"
require "rperf/middleware"

# The routes; they answer with their label.
class Site < Sinatra::Base
  set :show_exceptions, false
  set :dump_errors, false

  get "/compute/:word" do
    Tasks.compute
    Rperf.labels[:endpoint]
  end

  get "/fetch/*.*" do
    Tasks.fetch
    halt Rperf.labels[:endpoint]
  end

  post "/mix/?:word?" do
    Tasks.mix
    Rperf.labels[:endpoint]
  end

  # The next one takes it.
  get("/fail/:first") { pass }

  get("/fail/:second") { Tasks.fail }

  error { Rperf.labels[:endpoint] }

  not_found { Rperf.labels[:endpoint] }
end

# All of each request, by the label that it answers with.
class Measure
  def initialize(app)
    @app = app
  end

  def call(env)
    response = nil
    Tasks.measure(-> { response[2].first }) { response = @app.call(env) }
  end
end

use Rperf::Middleware
use Measure
map("/mounted") { run Site }
run Site
