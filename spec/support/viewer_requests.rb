# frozen_string_literal: true

require "json"

# Requests to Rperf::Viewer, in an environment that is development unless an example says another one.
module ViewerRequests
  # By which servers and frameworks name the environment.
  VARIABLES = %w[RAILS_ENV RACK_ENV APP_ENV].freeze

  def self.included(group)
    group.around do |example|
      require "rack"
      saved = VARIABLES.to_h { |name| [name, ENV.fetch(name, nil)] }
      in_environment("RACK_ENV" => "development")
      example.run
    ensure
      ENV.update(saved)
    end
    group.let(:http) { client(viewer) }
  end

  # Sets these, and unsets all others.
  def in_environment(variables)
    VARIABLES.each { |name| ENV[name] = variables[name] }
  end

  # A request of this machine, and one as the page makes it to change something.
  def local = { "HTTP_HOST" => "localhost:3000" }
  def ours = { "HTTP_HOST" => "localhost:3000", "HTTP_X_RPERF" => "1" }

  # A viewer that says nothing, above an app that says which path it was asked for.
  def viewer(app = ->(env) { [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]] }, **options)
    described_class.new(app, **options)
  end

  def client(app) = Rack::MockRequest.new(Rack::Lint.new(app))

  def json(response) = JSON.parse(response.body, symbolize_names: true)

  def list(http) = json(http.get("/rperf/snapshots.json", local))

  def take(http) = json(http.post("/rperf/snapshots", ours)).fetch(:id)
end
