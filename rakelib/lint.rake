# frozen_string_literal: true

namespace :lint do
  desc "rustfmt and clippy"
  task :rust do
    sh "cargo", "fmt", "--all", "--check"
    sh "cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"
    sh "cargo", "clippy", "--quiet", "--package", "rperf", "--features", "measure", "--", "-D", "warnings"
  end

  desc "RuboCop, where there is one"
  task :ruby do
    sh "rubocop", "--format", "quiet" do |ok, status|
      next if ok

      abort "rubocop found something to change" unless status.exitstatus == 127 || status.exitstatus.nil?

      warn "no RuboCop on this machine: the Ruby code isn't checked"
    end
  end
end
