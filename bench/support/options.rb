# frozen_string_literal: true

require "optparse"

module Bench
  # The command line of a benchmark: common options, and its own.
  module Options
    # @return [Array] what OptionParser#on needs for an option that may be repeated
    def self.some_of(names, default)
      first, *rest = names.each_slice(5).map { |some| "#{some.join(", ")}," }
      [names, "one of #{first}", *rest, "may be repeated (default: #{default})"]
    end

    # @param name [String] what stands after bin/bench
    # @param defaults [Hash] the options; :runs is described with its default
    # @param smoke [Hash] the values of --smoke: as short as possible
    # @yield [parser, options] to add options; the second is the Hash to write to
    # @return [Hash] defaults, overlaid with what was given
    def self.parse(name, arguments, defaults, smoke:)
      options = { smoke: false }.merge(defaults)
      parser = OptionParser.new do |it|
        it.banner = "usage: bin/bench #{name} [options]"
        it.on("--runs N", Integer, "rounds to measure (default #{defaults[:runs]})") { |runs| options[:runs] = runs }
        yield it, options if block_given?
        it.on("--smoke", "as short as possible, to see that it works") { options.merge!(smoke, smoke: true) }
      end
      rest = parser.parse(arguments)
      raise OptionParser::InvalidArgument, rest.first unless rest.empty?
      raise OptionParser::InvalidArgument, "--runs #{options[:runs]}" unless options[:runs].positive?

      options
    rescue OptionParser::ParseError => e
      abort("bin/bench #{name}: #{e.message}; see --help")
    end
  end
end
