# frozen_string_literal: true

require "rbconfig"

module Bench
  # The ways in which Ruby runs a program.
  module Engines
    # The first one also where the environment asks for a JIT.
    FLAGS = { "interpreter" => "--disable=jit", "yjit" => "--yjit", "zjit" => "--zjit" }.freeze
    NAMES = FLAGS.keys.freeze
    JITS = (NAMES - ["interpreter"]).freeze

    module_function

    # Adds --engine.
    # @param default [String] what is measured without it
    def add_option(parser, given, default)
      parser.on("--engine LIST", Array, "#{NAMES.join(", ")} or all (default: #{default})") do |names|
        names = NAMES if names == ["all"]
        unknown = names - NAMES
        raise OptionParser::InvalidArgument, unknown.first unless unknown.empty?

        given[:engines] = names
      end
    end

    # @return [String] what Ruby is started with
    def flag(engine) = FLAGS.fetch(engine)

    # @return [Array<String>] those that this Ruby has; a line says which it hasn't
    def available(names)
      missing = names.reject { |name| there?(name) }
      puts "this Ruby has no #{missing.join(", no ")}; left out is what needs it", "" unless missing.empty?
      names - missing
    end

    def there?(engine)
      @there ||= {}
      @there.fetch(engine) do
        @there[engine] = system(RbConfig.ruby, flag(engine), "-e", "", out: File::NULL, err: File::NULL)
      end
    end
    private_class_method :there?
  end
end
