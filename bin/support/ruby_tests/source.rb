# frozen_string_literal: true

require "open3"
require "rbconfig"

# Ruby's own tests, from a directory with Ruby's source.
module RubyTests
  ROOT = File.expand_path("../../..", __dir__)
  # Ruby's runner quotes names that no method could have in source code.
  NAME = /[A-Z]\w*(?:::\w+)*#(?:test[^\s:"]*|"test(?:[^"\\\n]|\\.)*")/
  # The line of a test that has run to its end, and the report of one that didn't pass.
  RAN = /(#{NAME}) = [\d.]+ s/
  FAILED = /^ *\d+\) (?:Failure|Error|Timeout):\n(#{NAME})/

  # What the option -n of Ruby's runner takes, of a name that the runner printed.
  def self.method_of(name)
    method = name.split("#", 2).last
    method.start_with?('"') ? method.undump : method
  end

  # The source of the Ruby that runs this.
  class Source
    # @param test [String] a file that has to be there
    # @return [Source] exits with a line if the directory has none of this Ruby's version
    def self.at(directory, test)
      header = File.join(directory, "include/ruby/version.h")
      unless File.exist?(header) && File.exist?(File.join(directory, test)) && version_in(header) == version
        abort("#{directory} has no source of Ruby #{RUBY_VERSION} with its tests")
      end
      new(directory)
    end

    def self.version = RUBY_VERSION[/\A\d+\.\d+/]

    def self.version_in(header)
      text = File.read(header)
      %w[MAJOR MINOR].map { |name| text[/RUBY_API_VERSION_#{name} (\d+)/, 1] }.join(".")
    end

    def initialize(directory)
      @directory = directory
    end

    # What became of tests: by their names, whether they pass, for those that have run; and the number of the signal
    # that has ended the run, or nil.
    Run = Struct.new(:results, :signal)

    # @param before [Array<String>] a command in front of Ruby, and its options behind
    # @return [Hash{String => Boolean}] as {Run} has them; exits if no test has run
    def results(tests, **) = run(tests, **).results.tap { |it| abort("no test has run") if it.empty? }

    # @return [Run]
    def run(tests, before: [], options: [], **env)
      command = [*before, RbConfig.ruby, *options, "test/runner.rb", "--verbose", "--jobs-status=none", *tests]
      env = { "RUBYOPT" => nil, "RUBYLIB" => nil }.merge(env.transform_keys(&:to_s))
      # What programs that the tests start say on stderr can come in the middle of a line.
      output, errors, status = Open3.capture3(env, *command, chdir: @directory)
      output = output.scrub
      ran = output.scan(RAN).flatten
      if ran.empty? || status.termsig
        warn "#{command.join(" ")}:\n#{(output.lines.last(20) + errors.scrub.lines.last(20)).join}"
      end
      failed = output.scan(FAILED).flatten
      Run.new(ran.to_h { |name| [name, !failed.include?(name)] }, status.termsig)
    end
  end
end
