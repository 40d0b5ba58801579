# frozen_string_literal: true

require "rspec/core/rake_task"

RSpec::Core::RakeTask.new(spec: :compile)

namespace :test do
  desc "Tests of the crates, which need no Ruby"
  task :rust do
    sh "cargo", "test", "--quiet"
  end
end
